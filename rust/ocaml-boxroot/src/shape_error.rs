// SPDX-License-Identifier: MIT
use core::fmt;

/// Why a value cannot be looked at, or built, in the way that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeError {
    /// An immediate has no fields.
    Immediate,
    /// The block has fewer fields.
    Bounds {
        /// The field asked for.
        index: usize,
        /// The number of fields.
        len: usize,
    },
    /// The words of a block with this tag are not values: closures and infix pointers (code), continuations (stacks),
    /// strings, floats, custom and abstract blocks, lazy values that are being forced.
    Opaque(u8),
    /// Blocks with this tag cannot be made from fields.
    Tag(u8),
    /// Not a Rust value of the expected type, see [`Boxed`](crate::Boxed).
    Payload {
        /// The expected type.
        expected: &'static str,
        /// The type it has, if this copy of the library made it.
        found: Option<&'static str>,
    },
    /// The value is not what its type says.
    Not(&'static str),
    /// An array or string of another length.
    Length {
        /// The length of the Rust type.
        expected: usize,
        /// The length of the value.
        found: usize,
    },
    /// Not a bigarray, or of a kind that this OCaml does not have.
    NoBigarray,
    /// A bigarray of another kind.
    BigarrayKind {
        /// The kind that the type of the elements says, by its name in OCaml.
        expected: &'static str,
        /// The kind that it has.
        found: &'static str,
    },
    /// A bigarray in the other layout.
    BigarrayLayout {
        /// The layout that the type says.
        expected: &'static str,
    },
    /// Another number of dimensions.
    Dimensions {
        /// The number that the type says, or the most that there can be.
        expected: usize,
        /// The number found.
        found: usize,
    },
    /// The elements of the bigarray are not at multiples of their size, as in a file that was mapped from an odd place.
    Misaligned,
    /// Another number of elements than the shape has.
    Elements {
        /// The product of the dimensions.
        shape: usize,
        /// The number of elements given.
        found: usize,
    },
    /// Memory is short, or the block would be too large.
    Alloc(crate::AllocError),
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShapeError::Immediate => f.write_str("an immediate OCaml value has no fields"),
            ShapeError::Bounds { index, len } => write!(f, "no field {index} in an OCaml block of {len} fields"),
            ShapeError::Opaque(tag) => write!(f, "an OCaml block with tag {tag} has no fields that are values"),
            ShapeError::Tag(tag) => write!(f, "OCaml blocks with tag {tag} are not made from fields"),
            ShapeError::Payload { expected, found: Some(found) } => {
                write!(f, "OCaml holds a Rust value of type `{found}`, not `{expected}`")
            }
            ShapeError::Payload { expected, found: None } => write!(f, "not a Rust value of type `{expected}`"),
            ShapeError::Not(expected) => write!(f, "the OCaml value is not {expected}"),
            ShapeError::Length { expected, found } => write!(f, "the OCaml value has length {found}, not {expected}"),
            ShapeError::NoBigarray => f.write_str("not a bigarray, or of a kind that this OCaml does not have"),
            ShapeError::BigarrayKind { expected, found } => {
                write!(f, "a bigarray of kind {found}, not {expected}")
            }
            ShapeError::BigarrayLayout { expected } => write!(f, "a bigarray whose layout is not {expected}"),
            ShapeError::Dimensions { expected, found } => write!(f, "{found} dimensions, not {expected}"),
            ShapeError::Misaligned => f.write_str("the elements of the bigarray are not aligned"),
            ShapeError::Elements { shape, found } => write!(f, "{found} elements for a shape of {shape}"),
            ShapeError::Alloc(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ShapeError {}
