// SPDX-License-Identifier: MIT
use crate::{glue, Any, Atomic, Int, Runtime, Value};
use core::marker::PhantomData;
use core::sync::atomic::AtomicIsize;

/// The field of an `Atomic.t`. All operations are sequentially consistent, as in OCaml. The reference ends with the
/// next thing that needs `&mut Runtime`.
// FIELD as for MutCell; the field is the first of its block.
#[repr(transparent)]
pub struct AtomicCell<T = Any> {
    word: AtomicIsize,
    _type: PhantomData<fn(T) -> T>,
    _local: PhantomData<*mut ()>,
}

impl<T> AtomicCell<T> {
    /// The value now.
    #[inline]
    pub fn get(&self) -> Value<'_, T> {
        // SAFETY: FIELD, for all four: the lock is held, and none of them runs the collector.
        unsafe { Value::from_raw(glue::obx_atomic_get(self.word.as_ptr())) }
    }

    /// Stores `v`.
    #[inline]
    pub fn set(&self, rt: &Runtime, v: Value<'_, T>) {
        self.exchange(rt, v);
    }

    /// Stores `v`; the result is what was there.
    #[inline]
    pub fn exchange(&self, rt: &Runtime, v: Value<'_, T>) -> Value<'_, T> {
        let _ = rt;
        // SAFETY: FIELD; LIVE.
        unsafe { Value::from_raw(glue::obx_atomic_exchange(self.word.as_ptr(), v.raw())) }
    }

    /// Stores `new` if `old` is there (the same word, as `==`), and says whether it did.
    #[inline]
    pub fn compare_and_set(&self, rt: &Runtime, old: Value<'_, T>, new: Value<'_, T>) -> bool {
        let _ = rt;
        // SAFETY: FIELD; LIVE.
        unsafe { glue::obx_atomic_cas(self.word.as_ptr(), old.raw(), new.raw()) }
    }
}

impl AtomicCell<Int> {
    /// Adds `n`, modulo 2⁶³ as in OCaml; the result is the number before.
    #[inline]
    pub fn fetch_add(&self, rt: &Runtime, n: Value<'_, Int>) -> isize {
        let _ = rt;
        // SAFETY: FIELD; TYPED: the field holds an immediate.
        unsafe { glue::obx_atomic_add(self.word.as_ptr(), n.raw()) >> 1 }
    }
}

impl<'a, T> Value<'a, Atomic<T>> {
    /// The field of the atomic reference.
    #[inline]
    pub fn contents(self) -> &'a AtomicCell<T> {
        // SAFETY: TYPED: a block with one atomic field; LIVE.
        unsafe { &*(self.raw() as *const AtomicCell<T>) }
    }
}

impl<T> core::fmt::Debug for AtomicCell<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("AtomicCell")
    }
}
