// SPDX-License-Identifier: MIT
use crate::{defer, glue, Runtime};
use core::ffi::c_void;
use core::ptr::NonNull;
#[cfg(all(ocaml5, feature = "std"))]
use ocaml_boxroot_sys as sys;

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
    // SAFETY: by the caller; LOCK until `entry` is dropped.
    unsafe {
        let entry = Entry::new()?;
        Some(f(Runtime::at(entry.record)))
    }
}

/// While a function that OCaml has called runs.
struct Entry {
    record: NonNull<c_void>,
    #[cfg(not(all(ocaml5, feature = "std")))]
    before: core::ffi::c_int,
}

/// OCaml 4 needs a note of who holds the lock.
#[cfg(not(all(ocaml5, feature = "std")))]
impl Entry {
    #[inline]
    unsafe fn new() -> Option<Self> {
        let mut before = 0;
        // SAFETY: by the caller.
        let record = unsafe { glue::obx_enter(&mut before) };
        let Some(record) = record else {
            // SAFETY: the state before.
            unsafe { glue::obx_leave(before) }
            return None;
        };
        Some(Entry { record, before })
    }
}

#[cfg(not(all(ocaml5, feature = "std")))]
impl Drop for Entry {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the state before obx_enter.
        unsafe { glue::obx_leave(self.before) }
    }
}

/// OCaml 5 tells by itself: there is nothing to note, and nothing to call if the thread enters the same domain again.
#[cfg(all(ocaml5, feature = "std"))]
impl Entry {
    #[inline]
    unsafe fn new() -> Option<Self> {
        let last = NonNull::new(LAST.get());
        // SAFETY: records are never freed; this one was found in this thread.
        let same = |record| unsafe { sys::domain_is_here(sys::BoxrootDomain::from_ptr(record)) };
        match last {
            Some(record) if same(record) => Some(Entry { record }),
            // SAFETY: by the caller.
            _ => unsafe { Entry::find() },
        }
    }

    #[cold]
    #[inline(never)]
    unsafe fn find() -> Option<Self> {
        let mut before = 0;
        // SAFETY: by the caller; the state before.
        let (record, settled) = unsafe {
            let record = glue::obx_enter(&mut before);
            glue::obx_leave(before);
            (record?, glue::obx_threads_settled())
        };
        // Until then each entry looks for OCaml's threads.
        if settled {
            LAST.set(record.as_ptr());
        }
        Some(Entry { record })
    }
}

#[cfg(all(ocaml5, feature = "std"))]
std::thread_local! {
    /// The domain's record with which this thread entered last, or null.
    static LAST: core::cell::Cell<*mut c_void> = const { core::cell::Cell::new(core::ptr::null_mut()) };
}
