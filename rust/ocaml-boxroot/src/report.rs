// SPDX-License-Identifier: MIT
//! Who holds OCaml values.
use core::ffi::CStr;
use ocaml_boxroot_sys::{boxroot_report, boxroot_sample};
use std::io::{Error, Result};

/// Reports who holds OCaml values: how many roots are live, by [`Storage`](crate::Storage); if creations are sampled,
/// by whom they were created; and what any code has registered with OCaml's runtime, with names of variables. From the
/// second report on it has the changes since the one before. It goes to the end of the file, or to standard error.
///
/// Any thread may call it at any time; without the domain lock it leaves out what is registered with the runtime. The
/// header `boxroot/report.h` says more, and how the environment asks for reports (`BOXROOT_REPORT`).
///
/// # Errors
/// The file cannot be opened, or there is no memory.
pub fn report(file: Option<&CStr>) -> Result<()> {
    // SAFETY: the string is one of C, or null.
    result(unsafe { boxroot_report(file.map_or(core::ptr::null(), CStr::as_ptr)) })
}

/// From the next minor collection on, the calls that create a root are recorded for one creation in `n`, drawn at
/// random, for [`report`]; 0 ends it. While it is on, a creation takes about 10 nanoseconds more.
///
/// # Errors
/// The C library does not tell calls, or there is no memory.
pub fn sample(n: u32) -> Result<()> {
    // SAFETY: no requirements.
    result(unsafe { boxroot_sample(n) })
}

fn result(done: bool) -> Result<()> {
    done.then_some(()).ok_or_else(Error::last_os_error)
}
