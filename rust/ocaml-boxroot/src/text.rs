// SPDX-License-Identifier: MIT
#[cfg(ocaml5)]
use crate::kind::FORCING;
use crate::kind::{FORWARD, LAZY};
use crate::{Bytes, Float, Kind, Lazy, Opt, Runtime, Str, Value};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

impl<'a> Value<'a, Str> {
    /// The bytes of the string, in place, for as long as nothing needs `&mut Runtime`.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        let (_, words) = self.header().unwrap_or((0, 0));
        let size = words * 8;
        let start = self.raw() as *const u8;
        // SAFETY: TYPED: a string, whose last byte says how many of the last word do not count. Strings never change,
        // and LIVE.
        unsafe { core::slice::from_raw_parts(start, size - 1 - usize::from(*start.add(size - 1))) }
    }

    /// The string, if it is UTF-8.
    pub fn to_str(self) -> Result<&'a str, core::str::Utf8Error> {
        core::str::from_utf8(self.as_bytes())
    }
}

impl Value<'_, Float> {
    /// The number.
    #[inline]
    pub fn to_f64(self) -> f64 {
        // SAFETY: TYPED: a boxed float; LIVE.
        unsafe { *(self.raw() as *const f64) }
    }
}

impl<'a, T> Value<'a, Opt<T>> {
    /// What is in `Some`.
    #[inline]
    pub fn to_option(self) -> Option<Value<'a, T>> {
        // SAFETY: TYPED: `None` is an immediate, `Some` a block with one field.
        (self.raw() & 1 == 0).then(|| unsafe { self.part(0) })
    }
}

impl<'a, T> Value<'a, Lazy<T>> {
    /// The result, if the value was forced.
    pub fn forced(self) -> Option<Value<'a, T>> {
        match self.header() {
            #[cfg(ocaml5)]
            Some((FORCING, _)) => None,
            Some((LAZY, _)) => None,
            // SAFETY: TYPED: the result of a value that was forced.
            Some((FORWARD, _)) => Some(unsafe { self.part(0) }),
            // SAFETY: TYPED: a result may stand for itself.
            _ => Some(unsafe { self.cast() }),
        }
    }
}

impl Value<'_, Bytes> {
    /// The number of bytes.
    pub fn len(self) -> usize {
        match self.erase().kind() {
            Kind::String { len } => len,
            _ => 0,
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Byte `i`, if it exists. A relaxed load: another domain may write it meanwhile, so there is no slice of them.
    pub fn get(self, i: usize) -> Option<u8> {
        Some(self.cell(i)?.load(Relaxed))
    }

    /// Sets byte `i`, by a relaxed store; false if there is none.
    pub fn set(self, rt: &Runtime, i: usize, byte: u8) -> bool {
        let _ = rt;
        self.cell(i).map(|cell| cell.store(byte, Relaxed)).is_some()
    }

    /// A copy.
    pub fn to_vec(self) -> Vec<u8> {
        self.erase().copy_bytes()
    }

    fn cell(&self, i: usize) -> Option<&AtomicU8> {
        // SAFETY: TYPED: so many bytes; LIVE. Others access them meanwhile, by atomic accesses or in OCaml.
        (i < self.len()).then(|| unsafe { &*(self.raw() as *const AtomicU8).add(i) })
    }
}

macro_rules! tuples {
    ($(($($t:ident $i:tt $f:ident),+))*) => {$(
        impl<'a, $($t),+> Value<'a, ($($t,)+)> {
            $(
                /// The component.
                #[inline]
                pub fn $f(self) -> Value<'a, $t> {
                    // SAFETY: TYPED: a tuple of as many fields.
                    unsafe { self.part($i) }
                }
            )+
        }
    )*}
}
tuples! { (A 0 first, B 1 second) (A 0 first, B 1 second, C 2 third) }
