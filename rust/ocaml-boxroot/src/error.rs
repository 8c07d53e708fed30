// SPDX-License-Identifier: MIT
//! Why something could not be done: the errors of blocks, roots, shapes, conversions and the lock.
use core::fmt;

/// OCaml's heap could not give a block of this size: memory is short, or no block can be so large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocError {
    pub(crate) words: usize,
}

impl AllocError {
    /// The size in words.
    pub fn words(self) -> usize {
        self.words
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn panic(self) -> ! {
        panic!("{self}")
    }
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OCaml's heap has no block of {} words", self.words)
    }
}

impl core::error::Error for AllocError {}

// --- roots

/// Why a root could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RootError {
    /// No memory for more roots; every existing root is intact.
    OutOfMemory,
    /// The C library was torn down.
    TornDown,
    /// A weak root cannot hold a lazy value, and an ephemeral root cannot have one as its key.
    Lazy,
    /// Before OCaml 5.5, weak and ephemeral roots are made on the first domain only.
    NotFirstDomain,
    /// Roots of a storage, and wide ones, are not made in a domain that has ended: by finalisers that run at its end.
    DomainEnded,
    /// Weak and ephemeral roots were not tested with this version of OCaml (5.0, and 5.6 and later).
    Untested,
}

impl RootError {
    #[cold]
    pub(crate) fn last() -> RootError {
        // SAFETY: the function needs nothing.
        match unsafe { ocaml_boxroot_sys::boxroot_status() } {
            ocaml_boxroot_sys::Status::ToreDown => RootError::TornDown,
            _ => RootError::OutOfMemory,
        }
    }

    /// Whether the C library's reason says this. It stands for errno, which a crate for `no_std` has no name for: the
    /// reasons are texts that never change.
    fn says(text: &[u8]) -> bool {
        // SAFETY: the function needs nothing; its result is a constant C string.
        let said = unsafe { core::ffi::CStr::from_ptr(ocaml_boxroot_sys::boxroot_error_string()) }.to_bytes();
        said.windows(text.len()).any(|w| w == text)
    }

    /// Why a root in a storage, or a wide one, could not be made, with the lock held.
    #[cold]
    pub(crate) fn last_in_storage() -> RootError {
        match RootError::says(b"without holding the domain lock") {
            true => RootError::DomainEnded,
            false => RootError::last(),
        }
    }

    /// Why a weak or ephemeral root could not be made.
    #[cold]
    pub(crate) fn last_weak() -> RootError {
        let says = RootError::says;
        match () {
            () if says(b"lazy value") => RootError::Lazy,
            () if says(b"first domain") => RootError::NotFirstDomain,
            () if says(b"tested with") => RootError::Untested,
            () => RootError::last(),
        }
    }
}

impl fmt::Display for RootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RootError::OutOfMemory => "no memory for more OCaml roots",
            RootError::TornDown => "no more OCaml roots: the library was torn down",
            RootError::Lazy => "a weak root cannot hold a lazy value, nor is one the key of an ephemeral root",
            RootError::NotFirstDomain => "before OCaml 5.5 weak and ephemeral roots are made on the first domain only",
            RootError::DomainEnded => "no OCaml roots in a storage, or wide ones, are made in a domain that has ended",
            RootError::Untested => "weak and ephemeral roots were not tested with this version of OCaml",
        })
    }
}

impl core::error::Error for RootError {}

// --- shapes

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
    Alloc(AllocError),
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

// --- conversions

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

// --- the lock

/// Why this thread could not get OCaml's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttachError {
    /// This thread holds the lock already: in another `attach`, in a function called by OCaml, in a finaliser.
    Nested,
    /// OCaml was not started, or no function of this library was called by OCaml yet.
    NotStarted,
    /// OCaml was shut down, or is shutting down.
    ShutDown,
    /// Only the thread that started OCaml can use it: the program contains no systhreads (OCaml's `threads.posix`).
    NoThreads,
    /// OCaml could not register this thread: memory is short, or the thread is in a blocking section that another
    /// library opened; with OCaml 4 also in a function without a runtime that OCaml called.
    NotRegistered,
    /// No memory for roots.
    OutOfMemory,
}

impl AttachError {
    /// From a result of `obx_attach`.
    #[inline]
    pub(crate) fn check(how: core::ffi::c_int) -> Result<core::ffi::c_int, AttachError> {
        match how {
            0 | 1 => Ok(how),
            _ => AttachError::from_code(how),
        }
    }

    #[cold]
    fn from_code(how: core::ffi::c_int) -> Result<core::ffi::c_int, AttachError> {
        match how {
            2 => Err(AttachError::Nested),
            3 => Err(AttachError::NotStarted),
            4 => Err(AttachError::ShutDown),
            5 => Err(AttachError::NoThreads),
            6 => Err(AttachError::NotRegistered),
            _ => Err(AttachError::OutOfMemory),
        }
    }
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AttachError::Nested => "this thread holds OCaml's lock already",
            AttachError::NotStarted => "OCaml is not started",
            AttachError::ShutDown => "OCaml was shut down",
            AttachError::NoThreads => {
                "only the thread that started OCaml can use it, since the program does not contain OCaml's threads: \
                 link them, with `(libraries threads.posix)` in dune, `.package(\"threads\")` in a build script"
            }
            AttachError::NotRegistered => "OCaml could not register this thread",
            AttachError::OutOfMemory => "no memory for OCaml roots",
        })
    }
}

impl core::error::Error for AttachError {}
