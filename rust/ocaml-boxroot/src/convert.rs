// SPDX-License-Identifier: MIT
//! Conversions between Rust's values and OCaml's: nothing is lost, or there is an error.
use crate::value::DOUBLE;
use crate::{
    glue, AllocError, Any, ConvertError, Element, Nursery, Root, Runtime, Typed, Value, ValueCell, ValueGuard,
};
use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use core::marker::PhantomData;

/// A Rust value that can be made an OCaml value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be converted to an OCaml value",
    note = "derive `ToOCaml` for it, or use a `ValueGuard`, a `Value` or a `Root`"
)]
pub trait ToOCaml: Typed {
    /// How many words the value takes, see [`Runtime::build`]: an estimate.
    fn words(&self) -> usize {
        0
    }

    /// The value. Uses no stack that grows with the length of lists.
    fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Self::Type>, ConvertError>;

    /// The number, where [`OCamlType::FLOAT`](crate::OCamlType::FLOAT): for flat arrays and records.
    #[doc(hidden)]
    #[inline]
    fn to_float(&self) -> Option<Flat<Self::Type>> {
        None
    }
}

/// Conversions that test whatever they are given, see [`Value::to_rust_checked`](crate::Value::to_rust_checked).
///
/// # Safety
/// `from_ocaml` may be called with a value of any type: it reads nothing that it has not tested by headers, and makes
/// nothing that claims a type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be made from an OCaml value of unknown type",
    note = "what can be tested: numbers, strings, lists, arrays, options, results and tuples of these"
)]
pub unsafe trait FromAny<'a>: FromOCaml<'a> {}

/// What the result holds; an error is returned. It is `?` without the conversion of the error, which costs the compiler
/// time in code that is instantiated many times.
macro_rules! good {
    ($result:expr) => {
        match $result {
            Ok(good) => good,
            Err(error) => return Err(error),
        }
    };
}
pub(crate) use good;

/// The words that the items take, with `own` words for each in its container. The sum is cut where it exceeds any minor
/// heap.
pub(crate) fn total<'s, R: ToOCaml + 's>(items: impl ExactSizeIterator<Item = &'s R>, own: usize) -> usize {
    const MANY: usize = 1 << 22;
    let mut sum = items.len().saturating_mul(own);
    for item in items.take(MANY) {
        sum += item.words();
        if sum > MANY {
            return MANY;
        }
    }
    sum
}

/// A number that is a value of the type that `T` describes: unboxed, as in flat arrays and records. Only `f64` and
/// `f32` make one, of type `float`; others pass one on that has their type.
// TYPED, as for Value.
#[doc(hidden)]
#[derive(Debug)]
pub struct Flat<T> {
    x: f64,
    _type: PhantomData<fn() -> T>,
}

impl<T> Flat<T> {
    #[inline]
    pub(crate) fn number(&self) -> f64 {
        self.x
    }

    /// # Safety
    /// A boxed `x` is a value of the type that `T` describes.
    #[inline]
    pub(crate) unsafe fn new(x: f64) -> Self {
        Flat { x, _type: PhantomData }
    }

    /// The same number as one of another type.
    ///
    /// # Safety
    /// As for `new`: one of the types is the other, unboxed.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn cast<U>(self) -> Flat<U> {
        Flat { x: self.x, _type: PhantomData }
    }

    /// The number in a box, in the major heap: nothing is collected.
    fn boxed(self, rt: &Runtime) -> Result<Value<'_, T>, ConvertError> {
        let _ = rt;
        // SAFETY: LOCK; the block is new, has one word, and is complete afterwards; TYPED.
        unsafe {
            let raw = glue::obx_alloc_major(1, DOUBLE.into());
            if raw == 0 {
                return Err(AllocError { words: 2 }.into());
            }
            (raw as *mut f64).write(self.x);
            Ok(Value::from_raw(raw))
        }
    }
}

/// A Rust value that can be read from an OCaml value. With `'a`, it may borrow from it, as `&'a str`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be made from an OCaml value",
    note = "derive `FromOCaml` for it, or take a `ValueRef`, a `Root` or (with `&Runtime`) a `Value`"
)]
pub trait FromOCaml<'a>: Typed + Sized {
    /// The Rust value.
    fn from_ocaml(rt: &'a Runtime, v: Value<'a, Self::Type>) -> Result<Self, ConvertError>;

    /// The same from an element of a flat array, or a field of a flat record.
    #[doc(hidden)]
    #[inline]
    fn from_float(rt: &'a Runtime, x: Flat<Self::Type>) -> Result<Self, ConvertError> {
        Self::from_ocaml(rt, x.boxed(rt)?)
    }
}

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

impl Runtime {
    /// The OCaml value of a Rust value, or why there is none: a number that does not fit, no room in the heap.
    #[inline]
    pub fn alloc<R: ToOCaml + ?Sized>(&mut self, r: &R) -> Result<ValueGuard<'_, R::Type>, ConvertError> {
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

impl<T> ValueGuard<'_, T> {
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

macro_rules! forward {
    ($(($($generics:tt)*) $t:ty, $of:ident;)*) => {$(
        impl<$($generics)*> Typed for $t where $of: Typed {
            type Type = $of::Type;
        }
        impl<$($generics)*> Element for $t {}
        impl<$($generics)*> ToOCaml for $t where $of: ToOCaml {
            #[inline]
            fn words(&self) -> usize {
                (**self).words()
            }
            #[inline]
            fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Self::Type>, ConvertError> {
                (**self).to_ocaml(n)
            }
            #[inline]
            fn to_float(&self) -> Option<Flat<Self::Type>> {
                (**self).to_float()
            }
        }
    )*}
}
forward! {
    (R: ?Sized) &R, R;
    (R: ?Sized) Box<R>, R;
    (R: ?Sized) Rc<R>, R;
    (R: ?Sized) Arc<R>, R;
    (R: ?Sized + ToOwned) Cow<'_, R>, R;
}

macro_rules! owned {
    ($($p:ident)*) => {$(
        impl<'a, R: FromOCaml<'a>> FromOCaml<'a> for $p<R> {
            #[inline]
            fn from_ocaml(rt: &'a Runtime, v: Value<'a, Self::Type>) -> Result<Self, ConvertError> {
                R::from_ocaml(rt, v).map($p::new)
            }
            #[inline]
            fn from_float(rt: &'a Runtime, x: Flat<Self::Type>) -> Result<Self, ConvertError> {
                R::from_float(rt, x).map($p::new)
            }
        }
        // SAFETY: as R.
        unsafe impl<'a, R: FromAny<'a>> FromAny<'a> for $p<R> {}
    )*}
}
owned! { Box Rc Arc }
