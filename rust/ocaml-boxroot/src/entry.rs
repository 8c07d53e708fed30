// SPDX-License-Identifier: MIT
use crate::{defer, glue, Runtime};

/// Runs `f` in a function that OCaml calls: for the wrappers of exported functions.
///
/// # Safety
/// This thread holds the domain lock and has no usable `Runtime`, which is the case when OCaml code has just called a
/// foreign function. The caller lets no panic unwind into OCaml.
#[inline]
pub unsafe fn enter<R>(f: impl for<'x> FnOnce(&'x mut Runtime) -> R) -> R {
    // SAFETY: by the caller (LOCK): a Runtime further up the stack is borrowed by the call into OCaml.
    unsafe {
        with_lock_held(|rt| {
            defer::run(rt);
            f(rt)
        })
    }
    .expect("no memory for OCaml roots")
}

/// `None` when there is no memory for the domain's roots.
///
/// # Safety
/// This thread holds the domain lock and has no usable `Runtime`.
#[inline]
pub(crate) unsafe fn with_lock_held<R>(f: impl for<'x> FnOnce(&'x mut Runtime) -> R) -> Option<R> {
    struct Leave(core::ffi::c_int);
    impl Drop for Leave {
        fn drop(&mut self) {
            // SAFETY: the state before obx_enter.
            unsafe { glue::obx_leave(self.0) }
        }
    }
    let mut leave = Leave(0);
    // SAFETY: by the caller; LOCK until `leave` is dropped.
    unsafe {
        let record = glue::obx_enter(&mut leave.0)?;
        Some(f(Runtime::at(record)))
    }
}
