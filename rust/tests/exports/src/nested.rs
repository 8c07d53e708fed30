// SPDX-License-Identifier: MIT
//! Frames of Rust and OCaml in turn, with exceptions and panics at every position, and what Rust imports.
use crate::host;
use ocaml_boxroot::*;
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};

static ENTERED: AtomicIsize = AtomicIsize::new(0);
static LEFT: AtomicIsize = AtomicIsize::new(0);

/// Must be dropped, whatever fails.
struct Guard;
impl Guard {
    fn new() -> Guard {
        ENTERED.fetch_add(1, SeqCst);
        Guard
    }
}
impl Drop for Guard {
    fn drop(&mut self) {
        LEFT.fetch_add(1, SeqCst);
    }
}

/// A frame of Rust at some depth. `how`: 0 calls `f`, 1 panics before, 2 panics afterwards, 3 returns an error before,
/// 4 an error afterwards, 5 panics on an exception, 6 returns a number on an exception.
#[export]
pub fn frame(rt: &mut Runtime, f: ValueRef<'_, Fun<(Int,), Int>>, depth: i32, how: isize) -> Result<isize, Exception> {
    let _guard = Guard::new();
    rt.frame(|rt, [slot]| {
        let _inner = Guard::new();
        let kept = slot.root(rt.string(depth.to_string()));
        let root = rt.string("root").root();
        let error = |rt: &mut Runtime| host::fail(rt, "an error").unwrap_err();
        match how {
            1 => panic!("before, at {depth}"),
            3 => return Err(error(rt)),
            _ => {}
        }
        let result = f.call(rt, (depth - 1,)).map(|n| n.value().to_isize());
        rt.minor_gc();
        assert_eq!(kept.get(rt).to_str(), Ok(&*depth.to_string()));
        assert_eq!(root.get(rt).to_str(), Ok("root"));
        match (how, result) {
            (2, _) => panic!("afterwards, at {depth}"),
            (4, _) => Err(error(rt)),
            (5, Err(e)) => panic!("on {e}"),
            (6, Err(_)) => Ok(-1),
            (_, Ok(n)) => Ok(n + 1),
            (_, Err(e)) => Err(e),
        }
    })
}

/// How many guards were made, and how many dropped.
#[export]
pub fn dropped() -> (isize, isize) {
    (ENTERED.load(SeqCst), LEFT.load(SeqCst))
}

#[export]
pub fn import_add(rt: &mut Runtime, a: isize, b: isize) -> Result<isize, Exception> {
    host::add(rt, a, b)
}

#[export]
pub fn import_fail(rt: &mut Runtime, text: &str) -> Result<String, Exception> {
    match host::fail(rt, text) {
        Ok(()) => Ok("no exception".into()),
        Err(e) if e.is(rt, "Failure") => Ok(e.to_string()),
        Err(e) => Err(e),
    }
}

#[export]
pub fn import_identity<A>(rt: &mut Runtime, a: ValueRef<'_, A>) -> Result<Root<A>, Exception> {
    host::identity(rt, a)
}

#[export]
pub fn import_pair<'a, A, B>(rt: &'a mut Runtime, a: Root<A>, b: Root<B>) -> Result<ValueGuard<'a, (A, B)>, Exception> {
    host::pair(rt, &a, &b)
}

#[export]
pub fn import_count(rt: &mut Runtime) -> Result<isize, Exception> {
    host::count(rt)
}

/// Down through `Host.nested`.
#[export]
pub fn walk(rt: &mut Runtime, depth: isize, how: isize) -> Result<isize, Exception> {
    let _guard = Guard::new();
    host::nested(rt, depth, how)
}
