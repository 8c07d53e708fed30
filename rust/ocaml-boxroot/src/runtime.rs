// SPDX-License-Identifier: MIT
use core::ffi::c_void;
use core::marker::PhantomData;
use core::ptr::NonNull;
use ocaml_boxroot_sys::BoxrootDomain;

/// The proof that this thread holds the domain lock, seen only by reference, in closures and exported functions.
///
/// `&Runtime` allows reading the heap. `&mut Runtime` also allows what may run the collector: allocating, calling
/// OCaml, releasing the lock. At most one is usable on a thread at any time. It is neither `Send` nor `Sync`, and never
/// owned.
// LOCK: a reference to a Runtime points to the record, in the C library, of the domain whose lock this thread holds,
// for as long as the reference is usable. So creating a root through it looks nothing up. The type is empty, so nothing
// is read through it here.
#[repr(C)]
pub struct Runtime {
    _record: [u8; 0],
    _local: PhantomData<*mut ()>,
}

impl Runtime {
    /// # Safety
    /// This thread holds the lock of the domain whose record this is for all of `'a`, and no other `Runtime` is usable
    /// on it.
    #[inline]
    pub(crate) unsafe fn at<'a>(record: NonNull<c_void>) -> &'a mut Runtime {
        // SAFETY: the type is empty, so any address will do; the caller establishes LOCK.
        unsafe { &mut *record.as_ptr().cast() }
    }

    #[inline]
    pub(crate) fn domain(&self) -> BoxrootDomain {
        // SAFETY: LOCK.
        unsafe { BoxrootDomain::from_ptr(NonNull::from(self).cast()) }
    }
}

impl core::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Runtime")
    }
}
