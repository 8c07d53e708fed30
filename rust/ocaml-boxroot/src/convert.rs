// SPDX-License-Identifier: MIT
//! Conversions between Rust's values and OCaml's: nothing is lost, or there is an error.
use crate::{glue, AllocError, Nursery, RootError, Runtime, ShapeError, Value};
use core::fmt;
use core::marker::PhantomData;

mod arrays;
pub(crate) mod floats;
mod ints;
mod lists;
mod refs;
mod sums;
mod text;
mod values;

/// Which OCaml type a type has: a descriptor. A type of Rust has one, whichever way it is converted; a descriptor is
/// its own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no counterpart among OCaml's types",
    note = "derive `OCamlType` for it"
)]
pub trait Typed {
    /// The type in OCaml. It implements [`OCamlType`](crate::OCamlType) where its text is needed.
    type Type;
}

/// Types whose arrays are OCaml arrays: all that can be converted, but `u8`, since arrays of bytes are strings.
#[diagnostic::on_unimplemented(
    message = "arrays of `{Self}` have no counterpart in OCaml",
    note = "`Vec<u8>` is a string; for a type with conversions of its own, write `impl Element for {Self} {{}}`"
)]
pub trait Element {}

/// A Rust value that can be made an OCaml value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be converted to an OCaml value",
    note = "derive `ToOCaml` for it, or use a `Fresh`, a `Value` or a `Root`"
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

/// What the result holds; an error is returned. As `?`, but without a conversion of the error, which takes the compiler
/// time in code that is written many times.
macro_rules! good {
    ($result:expr) => {
        match $result {
            Ok(good) => good,
            Err(error) => return Err(error),
        }
    };
}
pub(crate) use good;

/// The words of items, each in `own` words of its container. What exceeds any minor heap is not counted.
fn total<'s, R: ToOCaml + 's>(items: impl ExactSizeIterator<Item = &'s R>, own: usize) -> usize {
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
            let raw = glue::obx_alloc_major(1, crate::kind::DOUBLE.into());
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

/// Why a conversion is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConvertError {
    /// The number does not fit in the type.
    Range {
        /// The type that is too small, in Rust's or OCaml's words.
        target: &'static str,
    },
    /// A string that is not UTF-8, and where it stops being so.
    Utf8(core::str::Utf8Error),
    /// The value has another shape than its type says.
    Shape(ShapeError),
    /// The heap has no room.
    Alloc(AllocError),
    /// No root could be made.
    Root(RootError),
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConvertError::Range { target } => write!(f, "the number does not fit in {target}"),
            ConvertError::Utf8(error) => write!(f, "not UTF-8: {error}"),
            ConvertError::Shape(error) => error.fmt(f),
            ConvertError::Alloc(error) => error.fmt(f),
            ConvertError::Root(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ConvertError {}

impl From<ShapeError> for ConvertError {
    fn from(error: ShapeError) -> Self {
        ConvertError::Shape(error)
    }
}

impl From<AllocError> for ConvertError {
    fn from(error: AllocError) -> Self {
        ConvertError::Alloc(error)
    }
}

impl From<RootError> for ConvertError {
    fn from(error: RootError) -> Self {
        ConvertError::Root(error)
    }
}

impl From<core::str::Utf8Error> for ConvertError {
    fn from(error: core::str::Utf8Error) -> Self {
        ConvertError::Utf8(error)
    }
}
