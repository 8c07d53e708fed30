// SPDX-License-Identifier: MIT
//! Conversions between Rust's values and OCaml's: nothing is lost, or there is an error.
use crate::{AllocError, Nursery, OCamlType, ShapeError, Value};
use core::fmt;

/// A Rust value that can be made an OCaml value of type `Type`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be converted to an OCaml value",
    note = "derive `ToOCaml` for it, or return a `Fresh`, a `Value` or a `Root`"
)]
pub trait ToOCaml {
    /// The type in OCaml.
    type Type: OCamlType;

    /// How many words the value takes, see [`Runtime::build`](crate::Runtime::build): an estimate.
    fn words(&self) -> usize {
        0
    }

    /// The value. Uses no stack that grows with the length of lists.
    fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Self::Type>, ConvertError>;
}

/// A Rust value that can be read from an OCaml value of type `Type`. With `'a`, it may borrow from it, as `&'a str`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be made from an OCaml value",
    note = "derive `FromOCaml` for it, or take a `ValueRef`, a `Root` or (with `&Runtime`) a `Value`"
)]
pub trait FromOCaml<'a>: Sized {
    /// The type in OCaml.
    type Type: OCamlType;

    /// The Rust value.
    fn from_ocaml(v: Value<'a, Self::Type>) -> Result<Self, ConvertError>;
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
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConvertError::Range { target } => write!(f, "the number does not fit in {target}"),
            ConvertError::Utf8(error) => write!(f, "not UTF-8: {error}"),
            ConvertError::Shape(error) => error.fmt(f),
            ConvertError::Alloc(error) => error.fmt(f),
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

impl From<core::str::Utf8Error> for ConvertError {
    fn from(error: core::str::Utf8Error) -> Self {
        ConvertError::Utf8(error)
    }
}
