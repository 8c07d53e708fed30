// SPDX-License-Identifier: MIT
use crate::{defer, glue, AttachError, Runtime};

/// Runs `f` with the lock of this thread's domain, waiting for it if need be. The thread is registered with OCaml
/// meanwhile, if OCaml does not know it; it then belongs to the first domain.
///
/// A thread that has released the lock takes it again, in some 40 ns where nobody else wants it; one that OCaml does
/// not know is registered and unregistered each time, which takes longer.
///
/// ```no_run
/// # use ocaml_boxroot::*;
/// fn length(text: &Root<Str>) -> Result<usize, AttachError> {
///     attach(|rt| text.get(rt).as_bytes().len())
/// }
/// ```
///
/// # Errors
/// OCaml is not started, or shut down; this thread holds the lock; there are no systhreads, or memory is short. The
/// closure does not run then. Whether the lock is held already is asked of OCaml's runtime, so a nested call is an
/// error wherever it is made: also in functions called by OCaml, and in finalisers.
pub fn attach<R>(f: impl FnOnce(&mut Runtime) -> R) -> Result<R, AttachError> {
    with_lock(|rt| {
        defer::run(rt);
        f(rt)
    })
}

/// Without the deferred closures.
pub(crate) fn with_lock<R>(f: impl FnOnce(&mut Runtime) -> R) -> Result<R, AttachError> {
    struct Detach(core::ffi::c_int);
    impl Drop for Detach {
        fn drop(&mut self) {
            // SAFETY: obx_attach succeeded with this result, and nobody has a Runtime any more.
            unsafe { glue::obx_detach(self.0) }
        }
    }

    let mut record = None;
    // SAFETY: the function needs nothing.
    let how = AttachError::check(unsafe { glue::obx_attach(&mut record) })?;
    let _detach = Detach(how);
    let Some(record) = record else { return Err(AttachError::OutOfMemory) };
    // SAFETY: this thread now holds the lock, and did not before, so that no other Runtime is usable (LOCK).
    Ok(f(unsafe { Runtime::at(record) }))
}
