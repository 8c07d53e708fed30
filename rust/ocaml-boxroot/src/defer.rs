// SPDX-License-Identifier: MIT
use crate::Runtime;
use alloc::boxed::Box;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

struct Node {
    job: Box<dyn FnOnce(&mut Runtime) + Send>,
    next: *mut Node,
}

// STACK: the nodes reachable from here are boxes that belong to the stack; nobody else has pointers to them. Whoever
// takes the whole list owns it. It ends with null, or with FIRST the first time.
static STACK: AtomicPtr<Node> = AtomicPtr::new(FIRST);

/// The end of the list before it was taken for the first time: so what is to be done once costs no test of its own.
const FIRST: *mut Node = core::ptr::without_provenance_mut(1);

/// Runs `f` with the capability later, on any thread: at the next [`attach`](crate::attach), [`poll`](Runtime::poll) or
/// call from OCaml of a function that takes `&mut Runtime`. For destructors, which never have the capability. It takes
/// no lock, and so may be called anywhere, also inside the collector. The closures run in the order in which they were
/// given, each once; one that panics leaves the others for the next time. What is deferred when the program ends does
/// not run.
pub fn defer(f: impl FnOnce(&mut Runtime) + Send + 'static) {
    push(Box::into_raw(Box::new(Node { job: Box::new(f), next: null_mut() })));
}

fn push(node: *mut Node) {
    let mut head = STACK.load(Relaxed);
    loop {
        // SAFETY: the node is ours until it is in the stack.
        unsafe { (*node).next = head };
        match STACK.compare_exchange_weak(head, node, Release, Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

/// The jobs taken, oldest first. What is left when a job panics goes back.
struct Taken(*mut Node);
impl Drop for Taken {
    fn drop(&mut self) {
        while let Some(node) = self.next() {
            push(Box::into_raw(node));
        }
    }
}
impl Taken {
    fn next(&mut self) -> Option<Box<Node>> {
        if self.0.is_null() || self.0 == FIRST {
            return None;
        }
        // SAFETY: STACK: the list is ours.
        let node = unsafe { Box::from_raw(self.0) };
        self.0 = node.next;
        Some(node)
    }
}

/// Whether [`run`] has something to do.
#[inline]
pub(crate) fn is_waiting() -> bool {
    !STACK.load(Relaxed).is_null()
}

#[inline]
pub(crate) fn run(rt: &mut Runtime) {
    if is_waiting() {
        run_all(rt)
    }
}

#[cold]
fn run_all(rt: &mut Runtime) {
    let mut node = STACK.swap(null_mut(), Acquire);
    let mut taken = Taken(null_mut());
    while !node.is_null() && node != FIRST {
        // SAFETY: STACK: the list is ours.
        let next = core::mem::replace(unsafe { &mut (*node).next }, taken.0);
        taken.0 = node;
        node = next;
    }
    if node == FIRST {
        crate::export::hook();
    }
    while let Some(node) = taken.next() {
        (node.job)(rt);
    }
}
