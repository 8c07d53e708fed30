// SPDX-License-Identifier: MIT
//! A priority queue of OCaml values: an abstract type `'a queue` of OCaml over Rust's `BinaryHeap`.
#![forbid(unsafe_code)]

use ocaml_boxroot::prelude::*;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A value and its priority. The root keeps the value alive, and is dropped with the entry.
struct Entry<A> {
    priority: isize,
    value: Root<A>,
}

impl<A> Ord for Entry<A> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.priority.cmp(&other.priority)
    }
}
impl<A> PartialOrd for Entry<A> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<A> PartialEq for Entry<A> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<A> Eq for Entry<A> {}

/// OCaml owns it, and any domain may use it.
struct Queue<A>(Locked<BinaryHeap<Entry<A>>>);

ocaml_abstract! {
    /// A queue from which the value with the highest priority comes first.
    Queue<A> = "queue";
}

/// An empty queue.
#[export]
fn create<A: TypeVar>(rt: &mut Runtime) -> ValueGuard<'_, Boxed<Queue<A>>> {
    rt.boxed_erased(Queue(Locked::default()))
}

/// Adds a value with a priority.
#[export]
fn push<A: TypeVar>(rt: &mut Runtime, queue: &Queue<A>, priority: isize, value: Root<A>) {
    queue.0.with(rt, |_, heap| heap.push(Entry { priority, value }));
}

/// Takes the value with the highest priority.
#[export]
fn pop<A: TypeVar>(rt: &mut Runtime, queue: &Queue<A>) -> Option<Root<A>> {
    queue.0.with(rt, |_, heap| heap.pop()).map(|entry| entry.value)
}

/// How many values there are.
#[export]
fn length<A: TypeVar>(rt: &mut Runtime, queue: &Queue<A>) -> usize {
    queue.0.with(rt, |_, heap| heap.len())
}

library! {
    /// Priority queues.
    name = "heap",
    exports = [create, push, pop, length],
}
