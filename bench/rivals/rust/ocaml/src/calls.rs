// SPDX-License-Identifier: MIT
//! Functions over bare numbers are written without `func`, as the manual of the crate shows it. Every other one makes a
//! root of each argument.
use ocaml::{Int, Value};
use std::hint::black_box;

#[no_mangle]
pub extern "C" fn none_int(a: isize, b: isize) -> isize {
    a + b
}

#[no_mangle]
pub extern "C" fn none_float(a: f64, b: f64) -> f64 {
    a + b
}

#[ocaml::func]
pub fn read_int(n: Int) -> Int {
    n + 1
}

#[ocaml::func]
pub fn read_float(x: f64) -> bool {
    x > 0.0
}

#[ocaml::func]
pub fn read_string(s: &[u8]) -> Int {
    s.len() as Int
}

#[ocaml::func]
pub fn read_closure(f: Value, g: Value) -> bool {
    f.raw() == g.raw()
}

#[ocaml::func]
pub fn write_int(n: Int) -> Int {
    n + 1
}

#[ocaml::func]
pub fn write_float(x: f64) -> f64 {
    x + 1.0
}

#[ocaml::func]
pub fn write_string(s: Value) -> Int {
    unsafe { s.bytes_val().len() as Int }
}

#[ocaml::func]
pub fn write_closure(f: Value, n: Int) -> Result<Value, ocaml::Error> {
    unsafe { f.call1(gc, n) }
}

#[ocaml::func]
pub fn call_many(f: Value, count: Int) -> Result<Int, ocaml::Error> {
    let mut x: Int = 0;
    for _ in 0..count {
        x = unsafe { f.call1(gc, x)?.int_val() };
    }
    Ok(x)
}

#[ocaml::func]
pub fn release_many(count: Int) {
    for _ in 0..count {
        gc.enter_blocking_section();
        black_box(());
        gc.leave_blocking_section();
    }
}

#[ocaml::func]
pub fn attach_many(count: Int) {
    gc.enter_blocking_section();
    for _ in 0..count {
        gc.leave_blocking_section();
        black_box(());
        gc.enter_blocking_section();
    }
    gc.leave_blocking_section();
}
