// SPDX-License-Identifier: MIT
//! The externals that the programs in docs/examples of the package `ocaml-interop` declare.

use ocaml_interop::*;

#[export]
fn process_ocaml_tuple(cr: &mut OCamlRuntime, pair: OCaml<(OCamlInt, String)>) -> OCaml<(String, OCamlInt)> {
    let (n, s): (i64, String) = pair.to_rust();
    (format!("Processed in Rust: {s}"), n + 100).to_ocaml(cr)
}

struct Person {
    full_name: String,
    birth_year: i64,
    is_active: bool,
}

impl_conv_ocaml_record! {
    Person {
        full_name: String,
        birth_year: OCamlInt,
        is_active: bool,
    }
}

#[export]
fn rust_update_person_activity(cr: &mut OCamlRuntime, person: OCaml<Person>, active: OCaml<bool>) -> OCaml<Person> {
    let person: Person = person.to_rust();
    Person { is_active: active.to_rust(), ..person }.to_ocaml(cr)
}

#[export]
fn rust_create_person(
    cr: &mut OCamlRuntime,
    name: OCaml<String>,
    year: OCaml<OCamlInt>,
    active: OCaml<bool>,
) -> OCaml<Person> {
    Person { full_name: name.to_rust(), birth_year: year.to_rust(), is_active: active.to_rust() }.to_ocaml(cr)
}

enum Status {
    Ok,
    Error(String),
    Retrying(i64),
}

impl_conv_ocaml_variant! {
    Status {
        Status::Ok,
        Status::Error(message: String),
        Status::Retrying(count: OCamlInt),
    }
}

#[export]
fn rust_process_status(cr: &mut OCamlRuntime, status: OCaml<Status>) -> OCaml<String> {
    let text = match status.to_rust::<Status>() {
        Status::Ok => "ok".to_owned(),
        Status::Error(message) => format!("error {message}"),
        Status::Retrying(n) => format!("retry {n}"),
    };
    text.to_ocaml(cr)
}

#[export]
fn rust_create_status_ok(cr: &mut OCamlRuntime, unit: OCaml<()>) -> OCaml<Status> {
    let _ = unit;
    Status::Ok.to_ocaml(cr)
}

#[export]
fn rust_create_status_error(cr: &mut OCamlRuntime, message: OCaml<String>) -> OCaml<Status> {
    Status::Error(message.to_rust()).to_ocaml(cr)
}

#[export]
fn rust_create_status_retrying(cr: &mut OCamlRuntime, n: OCaml<OCamlInt>) -> OCaml<Status> {
    Status::Retrying(n.to_rust()).to_ocaml(cr)
}

/// The tags of a polymorphic variant have the names of the OCaml type.
#[allow(non_camel_case_types)]
enum Action {
    Start,
    Stop,
    Set_speed(i64),
}

impl_from_ocaml_polymorphic_variant! {
    Action {
        Start => Action::Start,
        Stop => Action::Stop,
        Set_speed(speed: OCamlInt) => Action::Set_speed(speed),
    }
}

impl_to_ocaml_polymorphic_variant! {
    Action {
        Action::Start,
        Action::Stop,
        Action::Set_speed(speed: OCamlInt),
    }
}

#[export]
fn rust_create_action(cr: &mut OCamlRuntime, unit: OCaml<()>) -> OCaml<Action> {
    let _ = unit;
    Action::Set_speed(50).to_ocaml(cr)
}

#[export]
fn rust_process_action(cr: &mut OCamlRuntime, action: OCaml<Action>) -> OCaml<String> {
    let text = match action.to_rust::<Action>() {
        Action::Start => "start".to_owned(),
        Action::Stop => "stop".to_owned(),
        Action::Set_speed(n) => format!("speed {n}"),
    };
    text.to_ocaml(cr)
}

#[export(noalloc)]
fn rust_process_float(cr: &OCamlRuntime, x: f64) -> f64 {
    x * 2.0
}

#[export(noalloc)]
fn rust_process_int64(cr: &OCamlRuntime, n: i64) -> i64 {
    n + 100
}

/// Not a bool: it fills one byte of the result's register, and OCaml reads the whole of it.
#[export(noalloc)]
fn rust_process_bool(cr: &OCamlRuntime, b: isize) -> isize {
    1 - b
}

#[export(noalloc)]
fn rust_process_unit_to_unit(cr: &OCamlRuntime, unit: OCaml<()>) {
    let _ = unit;
}

#[export(noalloc)]
fn rust_process_isize(cr: &OCamlRuntime, n: isize) -> isize {
    n + 5
}

#[export(noalloc)]
fn rust_process_i32(cr: &OCamlRuntime, n: i32) -> i32 {
    n.wrapping_mul(2)
}

#[export(noalloc)]
fn rust_combine_primitives_noalloc(cr: &OCamlRuntime, x: f64, n: i64, add: bool) -> i64 {
    if add {
        n + x as i64
    } else {
        n - x as i64
    }
}

#[export(noalloc)]
fn rust_select_i64_noalloc(cr: &OCamlRuntime, x: f64, n: i64, add: bool) -> i64 {
    if add {
        n + x as i64
    } else {
        n - x as i64
    }
}

#[export(noalloc)]
fn rust_log_primitives_noalloc(cr: &OCamlRuntime, x: f64, n: i64, b: bool) {
    println!("[Rust] {x} {n} {b}");
}
