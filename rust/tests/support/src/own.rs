// SPDX-License-Identifier: MIT
//! What own.ml registers.
use ocaml_boxroot::*;
use std::alloc::{GlobalAlloc, Layout as Block, System};
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};

/// The system's allocator, which counts live blocks of one size.
#[derive(Debug)]
pub struct Counting {
    live: AtomicIsize,
}

impl Counting {
    /// The size that is counted.
    pub const SIZE: usize = 123_456;

    /// None yet.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Counting {
        Counting { live: AtomicIsize::new(0) }
    }

    /// How many are live.
    pub fn live(&self) -> isize {
        self.live.load(SeqCst)
    }
}

// SAFETY: passes everything on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Block) -> *mut u8 {
        self.live.fetch_add((block.size() == Self::SIZE).into(), SeqCst);
        // SAFETY: by the caller.
        unsafe { System.alloc(block) }
    }
    unsafe fn dealloc(&self, place: *mut u8, block: Block) {
        self.live.fetch_sub((block.size() == Self::SIZE).into(), SeqCst);
        // SAFETY: by the caller.
        unsafe { System.dealloc(place, block) }
    }
}

functions! {
    own_compare: (Any, Any) -> Int;
    own_equal: (Any, Any) -> Bool;
    own_hash: (Any) -> Int;
    own_copy: (Any) -> Any;
    own_marshal: (Any) -> Str;
    own_unmarshal: (Str) -> Any;
    own_box: (Any) -> Ref<Any>;
    own_forget: (Ref<Any>) -> Unit;
    own_sort: (List<Any>) -> List<Any>;
    own_create: (Int, Int, List<Int>) -> Any;
    own_show: (Any, List<Int>) -> Str;
    own_copy_element: (Any, List<Int>, List<Int>) -> Unit;
    own_dims: (Any) -> List<Int>;
    own_sub: (Int, Any, Int, Int) -> Any;
    own_array1: (Any) -> Any;
    own_map: (Str, Int) -> Any;
    own_count: (Any, Int) -> Unit;
    own_bytes: (Str) -> Bytes;
}

/// The root with another type, as a wrong declaration in OCaml would give it.
pub fn declared_as<T>(root: Root) -> Root<T> {
    // SAFETY: none: for tests of what happens then. T is a type whose accesses are checked.
    unsafe { root.into_typed() }
}

/// A block like this one, as another copy of the library in the same process would make it: with operations of its own
/// that say the same, and data that mean the same.
pub fn foreign_copy<T>(rt: &mut Runtime, v: ValueRef<'_, T>) -> Root {
    extern "C" {
        fn testing_foreign_copy(v: isize) -> isize;
    }
    // SAFETY: the lock is held; the C function makes a block without a finaliser. The payload stays alive with the
    // test's value.
    unsafe {
        let raw = testing_foreign_copy(v.get(rt).raw());
        Value::<Any>::from_raw(raw).root(rt)
    }
}

/// A number behind a custom block, in C.
#[derive(Debug)]
pub enum Number {}

/// The same in C as [`Runtime::boxed`] and [`ValueCell::payload`], for comparison.
pub mod c {
    use super::Number;
    use ocaml_boxroot::*;

    extern "C" {
        fn testing_number(n: u64) -> isize;
        fn testing_numbers(count: usize);
        fn testing_read_number(root: isize, count: usize) -> u64;
    }

    /// One block.
    pub fn number(rt: &mut Runtime, n: u64) -> Root<Number> {
        // SAFETY: the lock is held, exclusively.
        unsafe { Value::<Number>::from_raw(testing_number(n)).root(rt) }
    }

    /// Makes blocks, and lets them go.
    pub fn numbers(_: &mut Runtime, count: usize) {
        // SAFETY: the lock is held, exclusively; no value is alive.
        unsafe { testing_numbers(count) }
    }

    /// Reads the number `count` times through the root; the sum.
    pub fn read(_: &Runtime, place: &Root<Number>, count: usize) -> u64 {
        let place: ValueRef<'_, Number> = place;
        // SAFETY: the lock is held; a boxroot is the address of its place.
        unsafe { testing_read_number(core::ptr::from_ref(place) as isize, count) }
    }
}
