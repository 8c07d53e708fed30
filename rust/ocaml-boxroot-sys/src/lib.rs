// SPDX-License-Identifier: MIT
//! Raw bindings of Boxroot: movable GC roots for OCaml.
//!
//! A root is a cell that foreign code owns and that keeps one OCaml value alive; the garbage collector updates it when
//! the value moves. The contracts below are those of the C header `boxroot.h`, which has the full text.
//!
//! "The domain lock" is the lock a thread holds while it runs OCaml code, or native code called from it, outside
//! blocking sections ("runtime lock" in OCaml 4.14).

#![no_std]

mod c;
mod inline;
mod layout;

use c::versioned;
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_void};
use core::ptr::NonNull;

/// An OCaml value: an immediate or a pointer to a block.
pub type Value = isize;

/// A cell that the GC may update whenever the domain lock is not held, or when OCaml allocates or collects.
pub type ValueCell = UnsafeCell<Value>;

/// A root. Copying it copies the pointer, not the ownership: of all copies, one is passed to [`boxroot_delete`], once.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, PartialEq, PartialOrd, Eq)]
pub struct BoxRoot {
    cell: NonNull<ValueCell>,
}

/// The cell of the root, for passing a value by reference; valid until the root is deleted or modified.
/// Reading through it has the conditions of [`boxroot_get`].
#[inline]
pub fn boxroot_get_ref(br: BoxRoot) -> *const ValueCell {
    #[cfg(feature = "checked")]
    unsafe {
        c::boxroot_get_ref(br)
    }
    #[cfg(not(feature = "checked"))]
    br.cell.as_ptr()
}

/// The value that the root holds.
///
/// # Safety
/// The root is not deleted; the domain lock is held. The value is not rooted: it is invalid once OCaml allocates or
/// collects.
#[inline]
pub unsafe fn boxroot_get(br: BoxRoot) -> Value {
    UnsafeCell::raw_get(boxroot_get_ref(br)).read()
}

/// A weak root (`boxroot/weak.h`): it finds a value as long as something else keeps that alive. Copying it copies the
/// pointer, not the ownership: of all copies, one is passed to [`boxroot_weak_delete`], once.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BoxRootWeak {
    key: NonNull<c_void>,
}

/// A wide root (`boxroot/wide.h`): several slots, each of which keeps a value alive, with one owner. Copying it copies
/// the pointer, not the ownership: of all copies, one is passed to [`boxroot_wide_delete`], once.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BoxRootWide {
    slots: NonNull<ValueCell>,
}

/// The most slots that a wide root can have.
pub const BOXROOT_WIDEST: usize = 64;

/// The cell of slot `i`, as [`boxroot_get_ref`]; those of the other slots precede and follow it.
///
/// # Safety
/// The wide root is not deleted, and has that slot.
#[inline]
pub unsafe fn boxroot_wide_ref(w: BoxRootWide, i: usize) -> *const ValueCell {
    #[cfg(feature = "checked")]
    return c::boxroot_wide_ref(w, i);
    #[cfg(not(feature = "checked"))]
    w.slots.as_ptr().add(i)
}

/// The value in slot `i`.
///
/// # Safety
/// The wide root is not deleted, and has that slot; the domain lock is held. The value is not rooted: it is invalid
/// once OCaml allocates or collects.
#[inline]
pub unsafe fn boxroot_wide_get(w: BoxRootWide, i: usize) -> Value {
    UnsafeCell::raw_get(boxroot_wide_ref(w, i)).read()
}

/// Makes slot `i` hold `v`. `*w` may change, which voids the cells got from it, of all slots. Needs the domain lock.
/// On failure `false`, for the reasons of [`boxroot_wide_create`]; the wide root then holds what it held.
///
/// # Safety
/// `w` can be read and written; the wide root is live and the caller's, and has that slot; `v` is a valid value.
#[inline]
pub unsafe extern "C" fn boxroot_wide_modify(w: *mut BoxRootWide, i: usize, v: Value) -> bool {
    inline::wide_modify(w, i, v)
}

/// An ephemeral root (`boxroot/ephemeral.h`): it keeps one value, the data, alive as long as another one, the key,
/// lives. Copying it copies the pointer, not the ownership: of all copies, one is passed to
/// [`boxroot_ephemeral_delete`], once.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BoxRootEphemeral {
    root: NonNull<c_void>,
}

/// A storage (`boxroot/storage.h`): a set of roots that are dropped together. Copying it copies the pointer, not the
/// ownership: of all copies, one is passed to [`boxroot_storage_delete`], once.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BoxRootStorage {
    storage: NonNull<c_void>,
}

/// A handle on a domain, for callers that create or delete many roots: with it no thread-local word is read. It is good
/// for any thread that holds the lock of that domain, after a blocking section too, until the domain ends or
/// [`boxroot_teardown`].
#[repr(transparent)]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BoxrootDomain {
    head: NonNull<layout::DomainHead>,
}

impl BoxrootDomain {
    /// The address of the domain's record, for those who keep the handle in a pointer of their own.
    #[inline]
    pub fn as_ptr(self) -> NonNull<c_void> {
        self.head.cast()
    }

    /// # Safety
    /// `record` comes from [`as_ptr`](Self::as_ptr).
    #[inline]
    pub unsafe fn from_ptr(record: NonNull<c_void>) -> BoxrootDomain {
        BoxrootDomain { head: record.cast() }
    }
}

/// A new root that holds `v`, owned by the caller. Never runs the GC. `None` when the domain lock is not held (errno
/// EPERM), when memory is short (errno ENOMEM), or after [`boxroot_teardown`]; [`boxroot_error_string`] tells which.
///
/// # Safety
/// `v` is a valid value. Any thread may call it; without the domain lock it fails.
#[inline]
pub unsafe extern "C" fn boxroot_create(v: Value) -> Option<BoxRoot> {
    inline::create(v)
}

/// Ends the root. Does not block or fail. Needs no lock: any thread may call it at any time; `boxroot.h` says when an
/// asynchronous signal handler may.
///
/// # Safety
/// The root is live and the caller's; no copy of it is used any more.
#[inline]
pub unsafe extern "C" fn boxroot_delete(br: BoxRoot) {
    inline::delete(br)
}

/// Makes `*br` hold `v`. `*br` may change, which voids the cells got from it. Needs the domain lock.
/// On failure `false`, for the reasons of [`boxroot_create`]; the root then holds its old value.
///
/// # Safety
/// `br` can be read and written; the root is live and the caller's; `v` is a valid value.
#[inline]
pub unsafe extern "C" fn boxroot_modify(br: *mut BoxRoot, v: Value) -> bool {
    inline::modify(br, v)
}

/// Whether `d` is known to be the record of the domain whose lock this thread holds, at the cost of two loads. `false`
/// also where it takes a call to find out: with OCaml 4, and with compilers and targets that are not known.
///
/// # Safety
/// `boxroot_domain_here` returned `d`, in this thread.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn domain_is_here(d: BoxrootDomain) -> bool {
    // SAFETY: by the caller.
    unsafe { inline::is_here(d) }
}

/// What identifies the domain: with OCaml 5, the address of its state in OCaml's runtime.
///
/// # Safety
/// The caller holds the lock of `d`.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn domain_state(d: BoxrootDomain) -> *mut core::ffi::c_void {
    // SAFETY: by the caller, so no other thread writes the word.
    unsafe { core::ptr::addr_of!((*d.head.as_ptr()).state).cast::<*mut core::ffi::c_void>().read() }
}

/// As [`boxroot_create`], without finding out who calls.
///
/// # Safety
/// The caller holds the lock of `d`, and `d` is good: neither is tested. `v` is a valid value.
#[inline]
pub unsafe extern "C" fn boxroot_create_in(d: BoxrootDomain, v: Value) -> Option<BoxRoot> {
    inline::create_in(d, v)
}

/// As [`boxroot_delete`], without finding out who calls. The root may belong to any domain; with one of `d` this is
/// faster.
///
/// # Safety
/// The caller holds the lock of `d`, and `d` is good: neither is tested. The root is live and the caller's; no copy of
/// it is used any more.
#[inline]
pub unsafe extern "C" fn boxroot_delete_in(d: BoxrootDomain, br: BoxRoot) {
    inline::delete_in(d, br)
}

// C's bool and Rust's have the same representation.
extern "C" {
    /// A handle on the domain whose lock the caller holds. `None` for the reasons of [`boxroot_create`]. Sets the
    /// library up at its first use.
    #[link_name = versioned!("domain_here")]
    pub fn boxroot_domain_here() -> Option<BoxrootDomain>;

    /// Prepares the library; optional in most programs. Needs the domain lock. `true` also when the library is running
    /// already. After [`boxroot_teardown`] it starts the library again. `false` with errno EPERM when the lock is
    /// not held.
    #[link_name = versioned!("setup")]
    pub fn boxroot_setup() -> bool;

    /// Why the last failing call of this thread failed: a constant C string.
    #[link_name = versioned!("error_string")]
    pub fn boxroot_error_string() -> *const c_char;

    /// Returns the memory of all roots and detaches the library from the runtime. Every root is invalid afterwards:
    /// deleting one has no effect. To be called when no other thread uses the library.
    #[link_name = versioned!("teardown")]
    pub fn boxroot_teardown();

    /// A new weak root that holds `v`, owned by the caller. Never runs the GC. `None` for the reasons of
    /// [`boxroot_create`], with errno EINVAL if `v` is a lazy value, and, before OCaml 5.5, with ENOTSUP on a domain
    /// but the first. `v` must be a valid value.
    #[link_name = versioned!("weak_create")]
    pub fn boxroot_weak_create(v: Value) -> Option<BoxRootWeak>;

    /// Writes the value to `*v` and returns `true`, or leaves it alone and returns `false`: the value is dead, now and
    /// for ever. The weak root must not be deleted, and the domain lock, of any domain, be held. The value is not
    /// rooted.
    #[link_name = versioned!("weak_get")]
    pub fn boxroot_weak_get(w: BoxRootWeak, v: *mut Value) -> bool;

    /// A new root that holds the value. `None` with errno 0 if that is dead, else for the reasons of
    /// [`boxroot_create`]. As for [`boxroot_weak_get`].
    #[link_name = versioned!("weak_upgrade")]
    pub fn boxroot_weak_upgrade(w: BoxRootWeak) -> Option<BoxRoot>;

    /// Ends the weak root, which must be the caller's, and of which no copy is used any more. Needs no lock: any thread
    /// may call it at any time.
    #[link_name = versioned!("weak_delete")]
    pub fn boxroot_weak_delete(w: BoxRootWeak);

    /// A new wide root with `n` slots, which hold the values from `*vs` on; owned by the caller. Needs the domain lock.
    /// Never runs the GC. `None` for the reasons of [`boxroot_create`], with errno EPERM also in a domain that has
    /// ended (in a finaliser that runs at its end), or with errno EINVAL unless 1 <= n <= [`BOXROOT_WIDEST`]. `vs` must
    /// point to `n` valid values.
    #[link_name = versioned!("wide_create")]
    pub fn boxroot_wide_create(n: usize, vs: *const Value) -> Option<BoxRootWide>;

    /// Ends the wide root, with all slots; it must be the caller's, and no copy of it be used any more. Needs no lock:
    /// any thread may call it at any time.
    #[link_name = versioned!("wide_delete")]
    pub fn boxroot_wide_delete(w: BoxRootWide);

    /// Stores `n` new roots from `*rs` on, which hold the values from `*vs` on; all or none. Needs the domain lock.
    /// `false` for the reasons of [`boxroot_create`]: no root was made, and each of `rs` is `None`. `vs` must point to
    /// `n` valid values, and `rs` to `n` places.
    #[link_name = versioned!("create_all")]
    pub fn boxroot_create_all(n: usize, vs: *const Value, rs: *mut Option<BoxRoot>) -> bool;

    /// [`boxroot_delete`] for each of the `n` roots from `*rs` on that is not `None`.
    #[link_name = versioned!("delete_all")]
    pub fn boxroot_delete_all(n: usize, rs: *const Option<BoxRoot>);

    /// A new ephemeral root, owned by the caller. Needs the domain lock. Never runs the GC. `None` for the reasons of
    /// [`boxroot_create`], with errno EINVAL if the key is a lazy value, with ENOTSUP before OCaml 5.5 on a domain but
    /// the first, and with a version of OCaml that was not tested. `key` and `data` must be valid values.
    #[link_name = versioned!("ephemeral_create")]
    pub fn boxroot_ephemeral_create(key: Value, data: Value) -> Option<BoxRootEphemeral>;

    /// Writes the data to `*v` and returns `true`, or leaves it alone and returns `false`: the key is dead, now and for
    /// ever. The ephemeral root must not be deleted, and the domain lock, of any domain, be held. The value is not
    /// rooted.
    #[link_name = versioned!("ephemeral_get")]
    pub fn boxroot_ephemeral_get(e: BoxRootEphemeral, v: *mut Value) -> bool;

    /// As [`boxroot_ephemeral_get`], for the key.
    #[link_name = versioned!("ephemeral_get_key")]
    pub fn boxroot_ephemeral_get_key(e: BoxRootEphemeral, v: *mut Value) -> bool;

    /// Ends the ephemeral root, which must be the caller's, and of which no copy is used any more. Needs no lock: any
    /// thread may call it at any time.
    #[link_name = versioned!("ephemeral_delete")]
    pub fn boxroot_ephemeral_delete(e: BoxRootEphemeral);

    /// A new storage without roots, owned by the caller. `name`, a C string or null, is for reports; 47 bytes of it are
    /// copied. Needs the domain lock. Never runs the GC. `None` for the reasons of [`boxroot_create`].
    #[link_name = versioned!("storage_create")]
    pub fn boxroot_storage_create(name: *const c_char) -> Option<BoxRootStorage>;

    /// A new root in `s` that holds `v`, a valid value; owned by the caller until `s` is cleared or deleted. Needs the
    /// domain lock, of any domain. Never runs the GC. `None` for the reasons of [`boxroot_create`], with errno EPERM
    /// also in a domain that has ended (in a finaliser that runs at its end).
    #[link_name = versioned!("storage_add")]
    pub fn boxroot_storage_add(s: BoxRootStorage, v: Value) -> Option<BoxRoot>;

    /// A handle on `s` and the domain whose lock the caller holds, with which [`boxroot_create_in`] makes roots in `s`.
    /// It is good as that of [`boxroot_domain_here`] is, and until `s` is deleted. `None` as for
    /// [`boxroot_storage_add`].
    #[link_name = versioned!("storage_here")]
    pub fn boxroot_storage_here(s: BoxRootStorage) -> Option<BoxrootDomain>;

    /// Drops all roots in `s`, of all domains; they must not be used again, or deleted. `s` must be the caller's, and
    /// no other thread use it, or a root in it, meanwhile. Needs the domain lock. `false` for the reasons of
    /// [`boxroot_setup`]: nothing was dropped.
    #[link_name = versioned!("storage_clear")]
    pub fn boxroot_storage_clear(s: BoxRootStorage) -> bool;

    /// Ends `s`, with all roots in it, as [`boxroot_storage_clear`] does. Needs no lock, and does not fail.
    #[link_name = versioned!("storage_delete")]
    pub fn boxroot_storage_delete(s: BoxRootStorage);

    /// How many roots of `s` this domain has made, or adopted from one that ended; deletions that are pending count as
    /// roots. Needs the domain lock (0 without it), and that no other thread uses `s`, or a root in it, meanwhile.
    #[link_name = versioned!("storage_count")]
    pub fn boxroot_storage_count(s: BoxRootStorage) -> usize;

    /// The name of `s`, valid until `s` is deleted.
    #[link_name = versioned!("storage_name")]
    pub fn boxroot_storage_name(s: BoxRootStorage) -> *const c_char;

    /// The state of the library. No requirements.
    #[link_name = versioned!("status")]
    pub fn boxroot_status() -> Status;

    /// Writes a snapshot of the counters to `*out`. No requirements; counters of running domains may lag.
    #[link_name = versioned!("get_stats")]
    pub fn boxroot_get_stats(out: *mut BoxrootStats);

    /// Prints the counters on the standard output. No requirements.
    #[link_name = versioned!("print_stats")]
    pub fn boxroot_print_stats();

    /// The number of live roots; prints where they were created on the standard error output. With the feature
    /// `checked` only: otherwise it prints nothing, and the result is `u64::MAX`. No requirements.
    #[link_name = versioned!("report_roots")]
    pub fn boxroot_report_roots() -> u64;

    /// Reports who holds OCaml values (`boxroot/report.h`), with changes since the last report: appended to the file,
    /// or on the standard error output if that is null. Needs no lock, but leaves out what is registered with OCaml's
    /// runtime without it. On failure `false`, with `errno`.
    #[link_name = versioned!("report")]
    pub fn boxroot_report(file: *const c_char) -> bool;

    /// From the next minor collection on, the calls that create a root are recorded for one creation in `n`; 0 ends it.
    /// Needs no lock. `false` where the C library does not tell calls, or there is no memory.
    #[link_name = versioned!("sample")]
    pub fn boxroot_sample(n: u32) -> bool;

    /// Once there are more than so many live roots, `reached` is called, once, with their number and `data`, by a
    /// thread that creates one; 0: never. Needs no lock. `reached` must not run OCaml code or the GC, nor unwind; it
    /// may report, and create and delete roots.
    #[link_name = versioned!("cap")]
    pub fn boxroot_cap(roots: u64, reached: CapReached, data: *mut c_void);
}

/// The function that [`boxroot_cap`] calls.
pub type CapReached = Option<unsafe extern "C" fn(u64, *mut c_void)>;

/// The state of the library, see [`boxroot_status`].
#[repr(C)]
#[non_exhaustive]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Before the first use.
    NotSetup,
    /// In use; a failure is transient.
    Running,
    /// After [`boxroot_teardown`]; a failure lasts until [`boxroot_setup`].
    ToreDown,
    /// Not reported any more.
    Invalid,
}

/// Counters since the start of the program (`struct boxroot_statistics` in C), summed over all domains. Start from
/// `BoxrootStats::default()`.
#[repr(C)]
#[non_exhaustive]
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct BoxrootStats {
    /// Size of a pool.
    pub pool_bytes: u64,
    /// Roots per pool.
    pub pool_capacity: u64,
    /// Address space taken from the system.
    pub bytes_reserved: u64,
    /// Pools that hold, or are about to hold, roots.
    pub pools_in_use: u64,
    /// Sum over domains of the most pools each has had in use.
    pub pools_peak: u64,
    /// Times the memory of a pool was purged.
    pub pools_purged: u64,
    /// Pools adopted from domains that ended.
    pub pools_adopted: u64,
    /// Live roots at the start of the last major cycle (OCaml 5), an upper bound.
    pub roots_last_cycle: u64,
    /// Creations that left the inline path.
    pub create_slow: u64,
    /// Deletions that left the inline path, on the owning domain.
    pub delete_slow: u64,
    /// Deletions carried out that came without the owner's lock, in a scan, or while marking.
    pub delete_remote: u64,
    /// Modifications that left the inline path.
    pub modify_slow: u64,
    /// Values darkened because their root was modified while marking was under way (OCaml 5).
    pub barrier: u64,
    /// Pools whose values the library marked itself (OCaml 5).
    pub darkened_pools: u64,
    /// Minor collections in which roots were scanned.
    pub minor_scans: u64,
    /// Slots looked at in them.
    pub minor_slots: u64,
    /// Starts of a major cycle that handed pools to the marker (OCaml 5).
    pub major_starts: u64,
    /// Other visits of all roots: compaction, heap verification, marking in OCaml 4.14.
    pub other_scans: u64,
}
