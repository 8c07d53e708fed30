// SPDX-License-Identifier: MIT
use core::fmt;

/// Why a root could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RootError {
    /// No memory for more roots; every existing root is intact.
    OutOfMemory,
    /// The C library was torn down.
    ToreDown,
}

impl RootError {
    #[cold]
    pub(crate) fn last() -> RootError {
        // SAFETY: the function needs nothing.
        match unsafe { ocaml_boxroot_sys::boxroot_status() } {
            ocaml_boxroot_sys::Status::ToreDown => RootError::ToreDown,
            _ => RootError::OutOfMemory,
        }
    }
}

impl fmt::Display for RootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RootError::OutOfMemory => "no memory for more OCaml roots",
            RootError::ToreDown => "no more OCaml roots: the library was torn down",
        })
    }
}

impl core::error::Error for RootError {}
