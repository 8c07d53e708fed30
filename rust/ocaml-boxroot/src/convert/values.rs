// SPDX-License-Identifier: MIT
//! Values of OCaml among Rust values: as they are.
use crate::{
    AllocError, Any, ConvertError, Element, Exception, Exn, FromAny, FromOCaml, Nursery, Root, Runtime, ToOCaml, Typed,
    Value, ValueCell,
};

macro_rules! places {
    ($($t:ty)*) => {$(
        impl<T> Typed for $t {
            type Type = T;
        }
        impl<T> Element for $t {}
        impl<T> ToOCaml for $t {
            #[inline]
            fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, T>, ConvertError> {
                Ok(self.get(n))
            }
        }
    )*}
}
places! { ValueCell<T> Value<'_, T> Root<T> }

impl<'a, T> FromOCaml<'a> for Value<'a, T> {
    #[inline]
    fn from_ocaml(_: &'a Runtime, v: Value<'a, T>) -> Result<Self, ConvertError> {
        Ok(v)
    }
}
// SAFETY: nothing is claimed about it.
unsafe impl<'a> FromAny<'a> for Value<'a, Any> {}

impl<'a, T> FromOCaml<'a> for Root<T> {
    #[inline]
    fn from_ocaml(rt: &'a Runtime, v: Value<'a, T>) -> Result<Self, ConvertError> {
        Ok(Root::try_new(rt, v)?)
    }
}
// SAFETY: nothing is claimed about it.
unsafe impl FromAny<'_> for Root<Any> {}

impl Typed for Exception {
    type Type = Exn;
}
impl Element for Exception {}
/// An error if memory was too short to keep the value.
impl ToOCaml for Exception {
    fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Exn>, ConvertError> {
        self.value(n).ok_or(AllocError { words: 1 }.into())
    }
}
impl<'a> FromOCaml<'a> for Exception {
    fn from_ocaml(rt: &'a Runtime, v: Value<'a, Exn>) -> Result<Self, ConvertError> {
        Ok(Exception::new(rt, v))
    }
}

impl Runtime {
    /// The OCaml value of a Rust value, or why there is none: a number that does not fit, no room in the heap.
    #[inline]
    pub fn alloc<R: ToOCaml + ?Sized>(&mut self, r: &R) -> Result<crate::Fresh<'_, R::Type>, ConvertError> {
        self.try_build(r.words(), |n| r.to_ocaml(n))
    }
}

impl<'a, T> Value<'a, T> {
    /// The value in Rust. It may borrow from this one, as `&str` does.
    #[inline]
    pub fn to_rust<R: FromOCaml<'a> + Typed<Type = T>>(self, rt: &'a Runtime) -> Result<R, ConvertError> {
        R::from_ocaml(rt, self)
    }
}

impl<T> ValueCell<T> {
    /// The value that the place holds now, in Rust.
    #[inline]
    pub fn to_rust<'r, R: FromOCaml<'r> + Typed<Type = T>>(&self, rt: &'r Runtime) -> Result<R, ConvertError> {
        R::from_ocaml(rt, self.get(rt))
    }
}

impl<T> crate::Fresh<'_, T> {
    /// The value in Rust.
    #[inline]
    pub fn to_rust<'r, R: FromOCaml<'r> + Typed<Type = T>>(&'r self) -> Result<R, ConvertError> {
        R::from_ocaml(self.rt(), self.value())
    }
}

impl<'a> Value<'a, Any> {
    /// The value in Rust, if it has the shape that the type needs: each block is tested. An OCaml value does not tell
    /// its type, so `0`, `false`, `[]` and `None` pass for each other.
    pub fn to_rust_checked<R: FromAny<'a>>(self, rt: &'a Runtime) -> Result<R, ConvertError> {
        // SAFETY: TESTED: whatever the value is, it is tested before it is used.
        R::from_ocaml(rt, unsafe { self.cast() })
    }
}
