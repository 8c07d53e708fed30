// SPDX-License-Identifier: MIT
use core::fmt;

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
            _ => AttachError::of(how),
        }
    }

    #[cold]
    fn of(how: core::ffi::c_int) -> Result<core::ffi::c_int, AttachError> {
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
            AttachError::NoThreads => "the program contains no OCaml systhreads, so that only one thread can use OCaml",
            AttachError::NotRegistered => "OCaml could not register this thread",
            AttachError::OutOfMemory => "no memory for OCaml roots",
        })
    }
}

impl core::error::Error for AttachError {}
