// SPDX-License-Identifier: MIT
//! A priority queue: Rust's `BinaryHeap`, whose entries own OCaml values. From this folder, with OCaml in PATH:
//!   cargo build --release
//!   ocamlopt queue.ml target/release/libqueue.a -cclib -lpthread -cclib -ldl -cclib -lm -o queue

use ocaml_boxroot_sys::{boxroot_create, boxroot_delete, boxroot_get, BoxRoot, Value};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Mutex;

/// Owns its root.
struct Entry {
    priority: isize,
    payload: BoxRoot,
}

/// A root may move to any thread; reading it needs OCaml's lock, which whoever calls `queue_pop` holds.
unsafe impl Send for Entry {}

impl Drop for Entry {
    fn drop(&mut self) {
        unsafe { boxroot_delete(self.payload) } // needs no lock: entries may be dropped by any thread
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.priority.cmp(&other.priority)
    }
}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Entry {}

static QUEUE: Mutex<BinaryHeap<Entry>> = Mutex::new(BinaryHeap::new());

const FALSE: Value = 1; // OCaml's false and (), as immediates
const TRUE: Value = 3;
const UNIT: Value = 1;

/// `false` when there is no memory for a root.
///
/// # Safety
/// Called by OCaml, with an integer and any value.
#[no_mangle]
pub unsafe extern "C" fn queue_push(priority: Value, payload: Value) -> Value {
    let Some(payload) = boxroot_create(payload) else {
        return FALSE;
    };
    let priority = priority >> 1; // the integer is tagged
    QUEUE.lock().unwrap().push(Entry { priority, payload });
    TRUE
}

/// The payload with the highest priority, or `default`.
///
/// # Safety
/// Called by OCaml.
#[no_mangle]
pub unsafe extern "C" fn queue_pop(default: Value) -> Value {
    match QUEUE.lock().unwrap().pop() {
        Some(entry) => boxroot_get(entry.payload), // returned to OCaml at once: deleting the root does not run the GC
        None => default,
    }
}

/// Another thread, one that OCaml knows nothing of, drops all entries.
///
/// # Safety
/// Called by OCaml.
#[no_mangle]
pub unsafe extern "C" fn queue_clear(_unit: Value) -> Value {
    let all = std::mem::take(&mut *QUEUE.lock().unwrap());
    std::thread::spawn(move || drop(all)).join().unwrap();
    UNIT
}
