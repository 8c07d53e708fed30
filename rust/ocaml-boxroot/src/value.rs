// SPDX-License-Identifier: MIT
use crate::{Any, Root, Runtime, ValueCell};
use core::marker::PhantomData;
use core::ops::Deref;

/// A value that is not rooted: valid until something that needs `&mut Runtime` happens. `Copy`, one word, the same
/// representation as C's `value`. `Value<'static>` is an immediate, or static data that never changes.
///
/// `T` describes the OCaml type; [`Any`] is unknown, and every access is checked.
// LIVE: during 'a the value is valid, and so is all that can be reached from it. Either it is an immediate or static
// and constant, or 'a is part of a shared borrow of the thread's Runtime, or of a Fresh that owns it, so that no
// collection happens in 'a.
// TYPED: if T is not Any, the value has the type that T describes.
#[repr(transparent)]
pub struct Value<'a, T = Any> {
    raw: isize,
    _runtime: PhantomData<&'a Runtime>,
    _type: PhantomData<fn() -> T>,
}

impl<T> Clone for Value<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Value<'_, T> {}

impl<'a, T> Value<'a, T> {
    /// # Safety
    /// `raw` is a value of the type that `T` describes; it and what it leads to are valid for all of `'a`.
    #[inline]
    pub const unsafe fn from_raw(raw: isize) -> Self {
        Value { raw, _runtime: PhantomData, _type: PhantomData }
    }

    /// The word that C calls `value`.
    #[inline]
    pub const fn raw(self) -> isize {
        self.raw
    }

    /// The same value without its type.
    #[inline]
    pub fn erase(self) -> Value<'a, Any> {
        // SAFETY: LIVE; Any describes every type.
        unsafe { Value::from_raw(self.raw) }
    }

    /// The same value with another type.
    ///
    /// # Safety
    /// The value has the type that `U` describes.
    #[inline]
    pub unsafe fn cast<U>(self) -> Value<'a, U> {
        // SAFETY: LIVE, and the caller.
        unsafe { Value::from_raw(self.raw) }
    }

    /// A root that holds the value. Panics when memory is short.
    #[inline]
    pub fn root(self, rt: &Runtime) -> Root<T> {
        Root::new(rt, self)
    }

    /// Whether the two are the same word: `==` in OCaml.
    #[inline]
    pub fn same<U>(self, other: Value<'_, U>) -> bool {
        self.raw == other.raw
    }
}

impl<T> Deref for Value<'_, T> {
    type Target = ValueCell<T>;
    #[inline]
    fn deref(&self) -> &ValueCell<T> {
        // SAFETY: the same representation; PLACE holds as long as this variable is borrowed, since 'a is longer. Nobody
        // ever writes through a ValueCell.
        unsafe { &*core::ptr::from_ref(self).cast() }
    }
}

impl<T> core::fmt::Debug for Value<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.raw & 1 == 1 {
            write!(f, "Value({})", self.raw >> 1)
        } else {
            f.write_str("Value(block)")
        }
    }
}
