// SPDX-License-Identifier: MIT
//! Of functions that only read there are none but `noalloc` ones, which catch no panic; the others are called as
//! functions that allocate.
use ocaml_interop::*;
use std::hint::black_box;

#[export(noalloc)]
fn none_int(cr: &OCamlRuntime, a: isize, b: isize) -> isize {
    a + b
}

#[export(noalloc)]
fn none_float(cr: &OCamlRuntime, a: f64, b: f64) -> f64 {
    a + b
}

#[export]
fn read_int(cr: &mut OCamlRuntime, n: isize) -> isize {
    n + 1
}

#[export]
fn read_float(cr: &mut OCamlRuntime, x: f64) -> OCaml<bool> {
    OCaml::of_bool(x > 0.0)
}

#[export]
fn read_string(cr: &mut OCamlRuntime, s: OCaml<String>) -> OCaml<OCamlInt> {
    (s.as_bytes().len() as i64).to_ocaml(cr)
}

type Function = fn(OCamlInt) -> OCamlInt;

/// There is no comparison of values: that of the places' contents is of their addresses.
#[export]
fn read_closure(cr: &mut OCamlRuntime, f: OCaml<Function>, g: OCaml<Function>) -> OCaml<bool> {
    // SAFETY: nothing is allocated between the two.
    let same = unsafe { f.raw() == g.raw() };
    same.to_ocaml(cr)
}

#[export]
fn write_int(cr: &mut OCamlRuntime, n: isize) -> isize {
    n + 1
}

#[export]
fn write_float(cr: &mut OCamlRuntime, x: f64) -> f64 {
    x + 1.0
}

/// An argument that is kept alive while the function may allocate is a root here.
#[export]
fn write_string(cr: &mut OCamlRuntime, s: BoxRoot<String>) -> OCaml<OCamlInt> {
    (s.get(cr).as_bytes().len() as i64).to_ocaml(cr)
}

fn call(cr: &mut OCamlRuntime, f: &BoxRoot<Function>, n: OCaml<'static, OCamlInt>) -> i64 {
    match f.try_call::<_, ()>(cr, &&*n) {
        Ok(n) => n.to_rust(),
        Err(e) => panic!("{:?}", e.message()),
    }
}

fn int(n: i64) -> OCaml<'static, OCamlInt> {
    OCaml::of_i64(n).expect("an int of OCaml")
}

#[export]
fn write_closure(cr: &mut OCamlRuntime, f: BoxRoot<Function>, n: OCaml<OCamlInt>) -> OCaml<OCamlInt> {
    let n = n.to_rust();
    call(cr, &f, int(n)).to_ocaml(cr)
}

#[export]
fn call_many(cr: &mut OCamlRuntime, f: BoxRoot<Function>, count: isize) -> OCaml<OCamlInt> {
    let mut x = 0;
    for _ in 0..count {
        x = call(cr, &f, int(x));
    }
    x.to_ocaml(cr)
}

#[export]
fn release_many(cr: &mut OCamlRuntime, count: isize) {
    for _ in 0..count {
        cr.releasing_runtime(|| black_box(()));
    }
}

#[export]
fn attach_many(cr: &mut OCamlRuntime, count: isize) {
    cr.releasing_runtime(|| {
        for _ in 0..count {
            OCamlRuntime::with_domain_lock(|_| black_box(()));
        }
    });
}
