// SPDX-License-Identifier: MIT
//! The externals that testing/ocaml-caller/ocaml_rust_caller.ml of the package `ocaml-interop` declares and checks.

use ocaml_interop::*;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::time::Duration;

#[export]
fn rust_twice(cr: &mut OCamlRuntime, n: OCaml<OCamlInt>) -> OCaml<OCamlInt> {
    (2 * n.to_rust::<i64>()).to_ocaml(cr)
}

#[export]
fn rust_twice_boxed_i64(cr: &mut OCamlRuntime, n: OCaml<OCamlInt64>) -> OCaml<OCamlInt64> {
    (2 * n.to_rust::<i64>()).to_ocaml(cr)
}

#[export]
fn rust_twice_boxed_i32(cr: &mut OCamlRuntime, n: OCaml<OCamlInt32>) -> OCaml<OCamlInt32> {
    (2 * n.to_rust::<i32>()).to_ocaml(cr)
}

#[export]
fn rust_twice_boxed_float(cr: &mut OCamlRuntime, x: OCaml<OCamlFloat>) -> OCaml<OCamlFloat> {
    (2.0 * x.to_rust::<f64>()).to_ocaml(cr)
}

#[export]
fn rust_twice_unboxed_float(cr: &mut OCamlRuntime, x: f64) -> f64 {
    2.0 * x
}

#[export(noalloc)]
fn rust_add_unboxed_floats_noalloc(cr: &OCamlRuntime, a: f64, b: f64) -> f64 {
    a + b
}

#[export]
fn rust_increment_bytes(cr: &mut OCamlRuntime, bytes: OCaml<OCamlBytes>, first: OCaml<OCamlInt>) -> OCaml<OCamlBytes> {
    let mut v: Vec<u8> = bytes.to_rust();
    v.iter_mut().take(first.to_rust::<i64>() as usize).for_each(|b| *b += 1);
    v.to_ocaml(cr)
}

fn incremented(mut v: Vec<i64>) -> Vec<i64> {
    v.iter_mut().for_each(|n| *n += 1);
    v
}

fn incremented_floats(mut v: Vec<f64>) -> Vec<f64> {
    v.iter_mut().for_each(|x| *x += 1.0);
    v
}

#[export]
fn rust_increment_ints_list(cr: &mut OCamlRuntime, v: OCaml<OCamlList<OCamlInt>>) -> OCaml<OCamlList<OCamlInt>> {
    incremented(v.to_rust()).to_ocaml(cr)
}

#[export]
fn rust_increment_ints_uniform_array(
    cr: &mut OCamlRuntime,
    v: OCaml<OCamlUniformArray<OCamlInt>>,
) -> OCaml<OCamlUniformArray<OCamlInt>> {
    incremented(v.to_rust()).to_ocaml(cr)
}

#[export]
fn rust_increment_floats_uniform_array(
    cr: &mut OCamlRuntime,
    v: OCaml<OCamlUniformArray<OCamlFloat>>,
) -> OCaml<OCamlUniformArray<OCamlFloat>> {
    incremented_floats(v.to_rust()).to_ocaml(cr)
}

#[export]
fn rust_increment_floats_float_array(cr: &mut OCamlRuntime, v: OCaml<OCamlFloatArray>) -> OCaml<OCamlFloatArray> {
    incremented_floats(v.to_rust()).to_ocaml(cr)
}

#[export]
fn rust_make_tuple(cr: &mut OCamlRuntime, a: OCaml<String>, b: OCaml<OCamlInt>) -> OCaml<(String, OCamlInt)> {
    (a.to_rust::<String>(), b.to_rust::<i64>()).to_ocaml(cr)
}

#[export]
fn rust_make_some(cr: &mut OCamlRuntime, s: OCaml<String>) -> OCaml<Option<String>> {
    Some(s.to_rust::<String>()).to_ocaml(cr)
}

#[export]
fn rust_make_ok(cr: &mut OCamlRuntime, n: OCaml<OCamlInt>) -> OCaml<Result<OCamlInt, String>> {
    Ok::<i64, String>(n.to_rust()).to_ocaml(cr)
}

#[export]
fn rust_make_error(cr: &mut OCamlRuntime, s: OCaml<String>) -> OCaml<Result<OCamlInt, String>> {
    Err::<i64, String>(s.to_rust()).to_ocaml(cr)
}

/// Milliseconds: sleeping makes them pass, and nothing else.
static NOW: AtomicI64 = AtomicI64::new(0);
static SLEEPS: AtomicBool = AtomicBool::new(false);

#[export]
fn rust_clock_now(cr: &mut OCamlRuntime, unit: OCaml<()>) -> OCaml<OCamlFloat> {
    let now = NOW.load(SeqCst) as f64 / 1000.0;
    SLEEPS.store(false, SeqCst);
    now.to_ocaml(cr)
}

#[export]
fn rust_sleep_has_begun(cr: &mut OCamlRuntime, unit: OCaml<()>) -> OCaml<bool> {
    SLEEPS.load(SeqCst).to_ocaml(cr)
}

/// Sleeps until another thread has looked at the clock.
#[export]
fn rust_sleep_releasing(cr: &mut OCamlRuntime, ms: OCaml<OCamlInt>) {
    let ms = ms.to_rust::<i64>();
    SLEEPS.store(true, SeqCst);
    cr.releasing_runtime(|| {
        while SLEEPS.load(SeqCst) {
            std::thread::yield_now();
        }
        NOW.fetch_add(ms, SeqCst);
    });
}

/// Sleeps for a while, in which other threads could look at the clock if they had the lock.
#[export]
fn rust_sleep(cr: &mut OCamlRuntime, ms: OCaml<OCamlInt>) {
    let ms = ms.to_rust::<i64>();
    SLEEPS.store(true, SeqCst);
    std::thread::sleep(Duration::from_millis(ms as u64));
    NOW.fetch_add(ms, SeqCst);
}

/// The OCaml types have two more constructors, which cannot be unpacked.
enum Movement {
    Step(i64),
    Expand((i64, i64)),
    RotateLeft,
    RotateRight,
}

fn describe(movement: Result<Movement, &str>, prefix: &str) -> String {
    match movement {
        Err(_) => "Error unpacking".to_owned(),
        Ok(Movement::Step(n)) => format!("{prefix}Step({n})"),
        Ok(Movement::Expand((x, y))) => format!("{prefix}Expand({x}, {y})"),
        Ok(Movement::RotateLeft) => format!("{prefix}RotateLeft"),
        Ok(Movement::RotateRight) => format!("{prefix}RotateRight"),
    }
}

pub struct OCamlMovement;

#[export]
fn rust_string_of_movement(cr: &mut OCamlRuntime, m: OCaml<OCamlMovement>) -> OCaml<String> {
    let movement = ocaml_unpack_variant! {
        m => {
            Movement::Step(count: OCamlInt),
            Movement::Expand(size: (OCamlInt, OCamlInt)),
            Movement::RotateLeft,
            Movement::RotateRight,
        }
    };
    describe(movement, "").to_ocaml(cr)
}

#[export]
fn rust_string_of_polymorphic_movement(cr: &mut OCamlRuntime, m: OCaml<OCamlMovement>) -> OCaml<String> {
    let movement = ocaml_unpack_polymorphic_variant! {
        m => {
            Step(count: OCamlInt) => Movement::Step(count),
            Expand(size: (OCamlInt, OCamlInt)) => Movement::Expand(size),
            RotateLeft => Movement::RotateLeft,
            RotateRight => Movement::RotateRight,
        }
    };
    describe(movement, "`").to_ocaml(cr)
}

#[export]
fn rust_call_ocaml_closure(
    cr: &mut OCamlRuntime,
    f: BoxRoot<fn(OCamlInt) -> OCamlInt>,
) -> OCaml<Result<OCamlInt, String>> {
    let result: Result<i64, String> = match f.try_call(cr, &0i64) {
        Ok(n) => Ok(n.to_rust()),
        Err(e) => Err(e.message().unwrap_or_else(|| "no message".to_owned())),
    };
    result.to_ocaml(cr)
}

#[export]
fn rust_call_ocaml_closure_and_return_exn(
    cr: &mut OCamlRuntime,
    f: BoxRoot<fn(OCamlInt) -> OCamlInt>,
) -> OCaml<Result<OCamlInt, OCamlException>> {
    let result: Result<i64, BoxRoot<OCamlException>> = match f.try_call(cr, &0i64) {
        Ok(n) => Ok(n.to_rust()),
        Err(e) => Err(e.root()),
    };
    result.to_ocaml(cr)
}

#[export(bytecode = "rust_rust_add_7ints_byte")]
fn rust_rust_add_7ints(
    cr: &mut OCamlRuntime,
    a: OCaml<OCamlInt>,
    b: OCaml<OCamlInt>,
    c: OCaml<OCamlInt>,
    d: OCaml<OCamlInt>,
    e: OCaml<OCamlInt>,
    f: OCaml<OCamlInt>,
    g: OCaml<OCamlInt>,
) -> OCaml<OCamlInt> {
    let sum: i64 = [a, b, c, d, e, f, g].iter().map(|n| n.to_rust::<i64>()).sum();
    sum.to_ocaml(cr)
}

#[export]
fn rust_should_panic_with_message(cr: &mut OCamlRuntime, message: OCaml<String>, panics: OCaml<bool>) {
    if panics.to_rust() {
        panic!("{}", message.to_rust::<String>());
    }
}

#[export]
fn rust_panic_while_releasing_lock(cr: &mut OCamlRuntime, message: OCaml<String>, panics: OCaml<bool>) {
    let (message, panics): (String, bool) = (message.to_rust(), panics.to_rust());
    cr.releasing_runtime(|| {
        if panics {
            panic!("{}", message);
        }
    });
}
