// SPDX-License-Identifier: MIT
use crate::{Float, Opt, Str, Value};

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
