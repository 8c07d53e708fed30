// SPDX-License-Identifier: MIT
//! Memory that is short: the checked build can be told when.
use ocaml_boxroot::*;

/// So many blocks in the major heap are allocated, the next is refused; none if it is negative.
#[export]
pub fn refuse(blocks: i32) {
    refuse_after(blocks)
}

/// Fails with a long text, which does not fit in the minor heap.
#[export]
pub fn long_error(n: isize) -> Result<(), String> {
    Err("e".repeat(n as usize))
}

/// Panics with a long text.
#[export]
pub fn long_panic(n: isize) {
    panic!("{}", "p".repeat(n as usize))
}

/// A long exception of its own.
#[export]
pub fn long_exception(n: isize) -> Result<(), crate::errors::ParseError> {
    Err(crate::errors::ParseError("x".repeat(n as usize), 1))
}

/// A result of several blocks.
#[export]
pub fn long_result(n: usize) -> (String, Vec<f64>, List<Vec<u8>>) {
    ("r".repeat(n), vec![0.5; n], List(vec![vec![7; n]; 3]))
}

/// An argument that is passed on.
#[export]
pub fn long_argument(rt: &mut Runtime, f: ValueRef<'_, Fun<(Str,), Int>>, n: usize) -> Result<isize, Exception> {
    let _kept = rt.string("kept").root();
    Ok(f.call(rt, ("a".repeat(n),))?.value().to_isize())
}
