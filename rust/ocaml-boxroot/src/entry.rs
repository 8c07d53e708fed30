// SPDX-License-Identifier: MIT
use crate::{defer, glue, Runtime};

/// Runs `f` in a function that OCaml calls: for the wrappers of exported functions.
///
/// # Safety
/// This thread holds the domain lock and has no usable `Runtime`, which is the case when OCaml code has just called a foreign function.
/// The caller lets no panic unwind into OCaml.
#[inline]
pub unsafe fn enter<R>(f: impl for<'x> FnOnce(&'x mut Runtime) -> R) -> R {
    // SAFETY: by the caller.
    let record = unsafe { glue::obx_here() }.expect("no memory for OCaml roots");
    // SAFETY: by the caller (LOCK): a Runtime further up the stack is borrowed by the call into OCaml.
    let rt = unsafe { Runtime::at(record) };
    defer::run(rt);
    f(rt)
}
