// SPDX-License-Identifier: MIT
use crate::{defer, glue, AttachError, Runtime};

/// Runs `f` with the lock of this thread's domain, waiting for it if need be. The thread is registered with OCaml
/// meanwhile, if OCaml does not know it; it then belongs to the first domain.
///
/// Whether the lock is held already is asked of OCaml's runtime, so a nested call is an error wherever it is made: also
/// in functions called by OCaml, and in finalisers.
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
