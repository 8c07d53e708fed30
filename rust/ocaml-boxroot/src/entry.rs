// SPDX-License-Identifier: MIT
use crate::{defer, glue, Runtime};
#[cfg(feature = "std")]
use core::cell::Cell;
use core::ffi::{c_int, c_void};
#[cfg(feature = "std")]
use core::ptr::null_mut;
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
// OCaml 5 tells who holds the lock. With OCaml 4 it is noted, and what was noted before is noted again at the end.
struct Entry {
    record: NonNull<c_void>,
    #[cfg(not(ocaml5))]
    _before: Before,
}

impl Entry {
    #[inline]
    unsafe fn new() -> Option<Self> {
        #[cfg(feature = "std")]
        if let Some(entry) = LAST.with(Last::enter) {
            return Some(entry);
        }
        // SAFETY: by the caller.
        unsafe { Entry::find() }
    }

    #[cold]
    #[inline(never)]
    unsafe fn find() -> Option<Self> {
        let mut before = 0;
        // SAFETY: by the caller; the place of the note lasts as long as the thread.
        unsafe {
            let record = glue::obx_enter(&mut before);
            let before = Before { note: glue::obx_note(), was: before };
            // Until OCaml's threads are found each entry looks for them.
            #[cfg(feature = "std")]
            if let (Some(record), true) = (record, glue::obx_threads_settled()) {
                LAST.with(|last| last.set(record, before.note));
            }
            record.map(|record| Entry::at(record, before))
        }
    }

    #[cfg(ocaml5)]
    #[inline]
    fn at(record: NonNull<c_void>, _: Before) -> Entry {
        Entry { record }
    }

    #[cfg(not(ocaml5))]
    #[inline]
    fn at(record: NonNull<c_void>, before: Before) -> Entry {
        Entry { record, _before: before }
    }
}

/// What the thread had noted. Dropping it notes that again.
struct Before {
    note: *mut c_int,
    was: c_int,
}

impl Drop for Before {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `obx_note` of this thread.
        unsafe { *self.note = self.was }
    }
}

/// What a thread that has entered knows, so that entering again calls nothing.
#[cfg(feature = "std")]
struct Last {
    /// The record of the domain, or null.
    record: Cell<*mut c_void>,
    /// Where the thread notes that it holds the lock.
    #[cfg(not(ocaml5))]
    note: Cell<*mut c_int>,
}

#[cfg(feature = "std")]
std::thread_local! {
    static LAST: Last = const { Last::nothing() };
}

/// If the thread enters the same domain again.
#[cfg(all(ocaml5, feature = "std"))]
impl Last {
    const fn nothing() -> Last {
        Last { record: Cell::new(null_mut()) }
    }

    #[inline]
    fn enter(&self) -> Option<Entry> {
        let record = NonNull::new(self.record.get())?;
        // SAFETY: records are never freed; this one was found in this thread.
        unsafe { sys::domain_is_here(sys::BoxrootDomain::from_ptr(record)) }.then_some(Entry { record })
    }

    fn set(&self, record: NonNull<c_void>, _: *mut c_int) {
        self.record.set(record.as_ptr());
    }
}

/// There is one domain.
#[cfg(all(not(ocaml5), feature = "std"))]
impl Last {
    const fn nothing() -> Last {
        Last { record: Cell::new(null_mut()), note: Cell::new(null_mut()) }
    }

    #[inline]
    fn enter(&self) -> Option<Entry> {
        let record = NonNull::new(self.record.get())?;
        let note = self.note.get();
        // SAFETY: `obx_note` of this thread, which is set with the record.
        let was = unsafe { note.replace(glue::HELD) };
        Some(Entry { record, _before: Before { note, was } })
    }

    fn set(&self, record: NonNull<c_void>, note: *mut c_int) {
        self.record.set(record.as_ptr());
        self.note.set(note);
    }
}
