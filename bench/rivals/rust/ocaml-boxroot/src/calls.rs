// SPDX-License-Identifier: MIT
use ocaml_boxroot::*;
use std::hint::black_box;

type Function = Fun<(Int,), Int>;

#[export(unsafe(symbol = "none_int"), noalloc)]
fn none_int(a: isize, b: isize) -> isize {
    a.wrapping_add(b)
}

#[export(unsafe(symbol = "none_float"), noalloc)]
fn none_float(a: f64, b: f64) -> f64 {
    a + b
}

#[export(unsafe(symbol = "read_int"))]
fn read_int(_rt: &Runtime, n: isize) -> isize {
    n + 1
}

#[export(unsafe(symbol = "read_float"))]
fn read_float(_rt: &Runtime, x: f64) -> bool {
    x > 0.0
}

#[export(unsafe(symbol = "read_string"))]
fn read_string(_rt: &Runtime, s: Value<'_, Str>) -> isize {
    s.as_bytes().len() as isize
}

#[export(unsafe(symbol = "read_closure"))]
fn read_closure(_rt: &Runtime, f: Value<'_, Function>, g: Value<'_, Function>) -> bool {
    f.ptr_eq(g)
}

#[export(unsafe(symbol = "write_int"))]
fn write_int(_rt: &mut Runtime, n: isize) -> isize {
    n + 1
}

#[export(unsafe(symbol = "write_float"))]
fn write_float(_rt: &mut Runtime, x: f64) -> f64 {
    x + 1.0
}

#[export(unsafe(symbol = "write_string"))]
fn write_string(rt: &mut Runtime, s: ValueRef<'_, Str>) -> isize {
    s.get(rt).as_bytes().len() as isize
}

#[export(unsafe(symbol = "write_closure"))]
fn write_closure<'a>(
    rt: &'a mut Runtime,
    f: ValueRef<'_, Function>,
    n: isize,
) -> Result<ValueGuard<'a, Int>, Exception> {
    f.call(rt, (n,))
}

#[export(unsafe(symbol = "call_many"))]
fn call_many(rt: &mut Runtime, f: ValueRef<'_, Function>, n: isize) -> Result<isize, Exception> {
    let mut x = 0;
    for _ in 0..n {
        x = f.call(rt, (x,))?.value().to_isize();
    }
    Ok(x)
}

#[export(unsafe(symbol = "release_many"))]
fn release_many(rt: &mut Runtime, n: isize) {
    for _ in 0..n {
        rt.release(|| black_box(()));
    }
}

#[export(unsafe(symbol = "attach_many"))]
fn attach_many(rt: &mut Runtime, n: isize) -> Result<(), AttachError> {
    rt.release(|| (0..n).try_for_each(|_| attach(|_| black_box(()))))
}
