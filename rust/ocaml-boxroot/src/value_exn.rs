// SPDX-License-Identifier: MIT
use crate::{Any, Exn, Value};
use core::marker::PhantomData;

/// A result or an exception, encoded in one word as OCaml's runtime does it.
// LIVE and TYPED as for Value, of what is encoded.
#[repr(transparent)]
pub struct ValueExn<'a, T = Any> {
    raw: isize,
    _marker: PhantomData<Value<'a, T>>,
}

impl<T> Clone for ValueExn<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for ValueExn<'_, T> {}

impl<'a, T> ValueExn<'a, T> {
    /// An encoded exception.
    #[inline]
    pub fn raise(exn: Value<'a, Exn>) -> Self {
        ValueExn { raw: exn.raw() | 2, _marker: PhantomData }
    }

    /// The result, or the exception.
    #[inline]
    pub fn decode(self) -> Result<Value<'a, T>, Value<'a, Exn>> {
        // SAFETY: LIVE and TYPED.
        unsafe {
            if self.raw & 3 == 2 {
                Err(Value::from_raw(self.raw & !3))
            } else {
                Ok(Value::from_raw(self.raw))
            }
        }
    }

    /// The encoded word.
    #[inline]
    pub const fn raw(self) -> isize {
        self.raw
    }

    /// # Safety
    /// `raw` encodes a value of the type that `T` describes, or an exception; it is valid for all of `'a`.
    #[inline]
    pub const unsafe fn from_raw(raw: isize) -> Self {
        ValueExn { raw, _marker: PhantomData }
    }
}

impl<'a, T> From<Value<'a, T>> for ValueExn<'a, T> {
    #[inline]
    fn from(v: Value<'a, T>) -> Self {
        ValueExn { raw: v.raw(), _marker: PhantomData }
    }
}

impl<T> core::fmt::Debug for ValueExn<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("ValueExn").field(&self.decode()).finish()
    }
}
