// SPDX-License-Identifier: MIT
use crate::{glue, Any, Ref, Runtime, Value};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicIsize, Ordering::Acquire};

/// A mutable field of a block in OCaml's heap. The reference ends with the next thing that needs `&mut Runtime`.
///
/// `get` is an acquire load, so that what another domain wrote before it published the value is seen; `set` is OCaml's
/// own assignment, which publishes by a release.
// FIELD: the reference points to a field of a block that is valid as long as the reference, which is a kind of Value;
// the field's values have the type that T describes. Having one means to hold the lock.
#[repr(transparent)]
pub struct MutCell<T = Any> {
    word: AtomicIsize,
    _type: PhantomData<fn(T) -> T>,
    _local: PhantomData<*mut ()>,
}

impl<T> MutCell<T> {
    /// The value of the field now.
    #[inline]
    pub fn get(&self) -> Value<'_, T> {
        // SAFETY: FIELD: no collection happens while self is borrowed, so what a live field holds lives.
        unsafe { Value::from_raw(self.word.load(Acquire)) }
    }

    /// Assigns the field.
    #[inline]
    pub fn set(&self, rt: &Runtime, v: Value<'_, T>) {
        let _ = rt;
        // SAFETY: FIELD; LIVE. caml_modify does not run the collector.
        unsafe { glue::obx_modify(self.word.as_ptr(), v.raw()) }
    }
}

impl<'a, T> Value<'a, Ref<T>> {
    /// The field of the reference.
    #[inline]
    pub fn contents(self) -> &'a MutCell<T> {
        // SAFETY: TYPED: a block with one mutable field; LIVE.
        unsafe { &*(self.raw() as *const MutCell<T>) }
    }
}

impl<T> core::fmt::Debug for MutCell<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("MutCell")
    }
}
