// SPDX-License-Identifier: MIT
//! Functions of each kind, for the OCaml program in ocaml/.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, clippy::all)]

mod errors;
mod kinds;
mod names;
mod nested;
#[cfg(feature = "checked")]
mod refused;
mod shapes;

use ocaml_boxroot::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};
use std::sync::Mutex;

/// A Rust value that OCaml owns.
#[derive(Debug, Default)]
pub struct Counter(AtomicIsize);

#[export]
impl Counter {
    /// A new counter.
    #[export(name = "counter")]
    pub fn create(rt: &mut Runtime) -> ValueGuard<'_, Boxed<Self>> {
        rt.boxed(Counter::default())
    }

    /// The number now, and counts.
    pub fn next(&self) -> isize {
        self.0.fetch_add(1, SeqCst)
    }

    /// As `next`, after a collection.
    fn next_later(&self, rt: &mut Runtime, s: ValueRef<'_, Str>) -> String {
        rt.full_major().unwrap();
        format!("{} {}", s.get(rt).to_str().unwrap(), self.next())
    }

    /// The number after this one.
    pub fn next_of(n: isize) -> isize {
        n + 1
    }

    #[export(name = "twice")]
    fn doubled(rt: &mut Runtime, s: &str) -> String {
        rt.minor_gc();
        s.repeat(2)
    }
}

/// A queue of OCaml values.
#[derive(Debug)]
pub struct Queue<A>(Mutex<VecDeque<Root<A>>>);

ocaml_abstract! {
    /// Counts.
    Counter = "counter";
    Queue<A> = "queue";
}

#[export]
fn queue_create<A: TypeVar>(rt: &mut Runtime) -> ValueGuard<'_, Boxed<Queue<A>>> {
    rt.boxed_erased(Queue(Mutex::default()))
}

#[export]
fn queue_push<A: TypeVar>(queue: &Queue<A>, value: Root<A>) {
    queue.0.lock().unwrap().push_back(value);
}

#[export]
fn queue_pop<B: TypeVar>(rt: &Runtime, queue: &Queue<B>) -> Option<Root<B>> {
    let _ = rt;
    queue.0.lock().unwrap().pop_front()
}

import! {
    /// Functions of host.ml.
    pub mod host = "Host";
    /// Adds.
    pub fn add(a: isize, b: isize) -> Result<isize, Exception>;
    pub fn fail(text: &str) -> Result<(), Exception>;
    pub fn identity<A>(x: ValueRef<'_, A>) -> Result<Root<A>, Exception>;
    pub fn pair<A, B>(x: &Root<A>, y: &Root<B>) -> Result<ValueGuard<'_, (A, B)>, Exception>;
    #[name = "counter"]
    pub fn count() -> Result<isize, Exception>;
    pub fn nested(depth: isize, how: isize) -> Result<isize, Exception>;
}

library! {
    /// Functions of each kind (* with "a quote
    name = "exports",
    exports = [
        kinds::add, kinds::half, kinds::negate, kinds::nothing, kinds::mixed, kinds::small, kinds::large, kinds::far,
        kinds::length, kinds::greet, kinds::double_all, kinds::find, kinds::first, kinds::same, kinds::keep,
        kinds::kept, kinds::place, kinds::through_root, kinds::apply, kinds::survivor, kinds::fresh, kinds::frozen,
        kinds::rooted, kinds::maybe, kinds::maybe_value, kinds::maybe_place, kinds::nine, kinds::twelve, kinds::swap,
        kinds::parse, kinds::reraise, kinds::forward, kinds::index, kinds::error_chain, kinds::explode, kinds::later,
        kinds::later_count, kinds::length_noalloc, kinds::explode_noalloc, kinds::spawn, kinds::end_, kinds::released,
        kinds::borrowed, kinds::huge,
        errors::parse_line, errors::fail_with, errors::classify, errors::exception_of, errors::pass_through,
        errors::backtrace, errors::wrapped,
        names::words, names::lock, names::rt, names::places, names::result, names::x0, names::a0, names::w0,
        names::body, names::native, names::describe, names::held, names::attached, names::outer,
        nested::frame, nested::dropped, nested::import_add, nested::import_fail, nested::import_identity,
        nested::import_pair, nested::import_count, nested::walk,
        Counter::create, Counter::next, Counter::next_later, Counter::next_of, Counter::doubled,
        queue_create, queue_push, queue_pop, shapes::volume, shapes::cube,
    ],
    imports = [host],
    exceptions = [errors::ParseError, errors::Io, errors::HostError, errors::Break],
}
