// SPDX-License-Identifier: MIT
use crate::{Any, Runtime, Value};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// A place that holds a value, however the value is kept alive: a root, a local slot, an argument, a field of a block,
/// a variable with an immediate. Always behind a reference, see [`ValueRef`].
// PLACE: as long as the reference to it may be used by somebody who has a Runtime, the cell holds a value that is valid
// then, of the type that T describes. Others may write it meanwhile, whole words at a time: the collector, and mutators
// on other domains.
#[repr(transparent)]
pub struct ValueCell<T = Any> {
    word: AtomicIsize,
    _type: PhantomData<fn() -> T>,
    _local: PhantomData<*mut ()>,
}

/// A value by reference: `&root`, `&immediate`, `&value`, a field, an argument and a local slot all pass as one, by
/// deref coercion.
pub type ValueRef<'a, T = Any> = &'a ValueCell<T>;

impl<T> ValueCell<T> {
    /// # Safety
    /// `raw` stays a valid value of the type that `T` describes as long as the cell is used.
    #[inline]
    pub(crate) const unsafe fn new(raw: isize) -> Self {
        ValueCell { word: AtomicIsize::new(raw), _type: PhantomData, _local: PhantomData }
    }

    /// The value that the place holds now. A relaxed load, which is what OCaml's memory model asks for.
    #[inline]
    pub fn get<'r>(&self, rt: &'r Runtime) -> Value<'r, T> {
        let _ = rt;
        // SAFETY: PLACE, and no collection happens during 'r.
        unsafe { Value::from_raw(self.word.load(Relaxed)) }
    }

    /// The same place without its type.
    #[inline]
    pub fn erase(&self) -> &ValueCell<Any> {
        // SAFETY: the same representation; Any describes every type.
        unsafe { self.cast() }
    }

    /// The same place with another type.
    ///
    /// # Safety
    /// The values in this place have the type that `U` describes as long as it is borrowed.
    #[inline]
    pub unsafe fn cast<U>(&self) -> &ValueCell<U> {
        // SAFETY: the same representation; PLACE by the caller.
        unsafe { &*core::ptr::from_ref(self).cast() }
    }

    /// The word in it, whoever may look: by those who know that nobody writes it.
    #[inline]
    pub(crate) fn word(&self) -> &AtomicIsize {
        &self.word
    }
}

impl<T> core::fmt::Debug for ValueCell<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("ValueCell")
    }
}
