// SPDX-License-Identifier: MIT
//! The hot paths, as in `boxroot/inline.h`, which explains the words. Three builds:
//! - checked: every call goes to the C library;
//! - `boxroot_thread_words` set (by build.rs, when OCaml's version and the target are known): all paths are inline. The
//!   words that say which domain calls are thread-local variables of C, read in the initial-exec model by inline
//!   assembly;
//! - otherwise: every call goes to the C library.
//!
//! With OCaml 4.14, `create_in` and `delete_in` are `create` and `delete`, but for storages (`boxroot/inline.h`).
//!
//! Invariants of the C library that the unsafe code relies on, by the names that it uses:
//! - POOLS: the memory of a pool stays readable for ever, and a root is in a pool, aligned on POOL_SIZE, that starts
//!   with a PoolHead.
//! - WORDS: a comparison word of a pool equals the domain whose lock this thread holds only if this thread may do that
//!   operation: free a slot (`free_owner`), take one (`alloc_owner`), store any value in a live one (`store_owner`).
//!   Until the thread releases the lock, no other thread writes `free`, `freed` and the free slots; the three words are
//!   atomic, since others may compare them meanwhile.
//! - LIST: `free` is FREE_END, or the address of a free slot + 1; that slot holds the next such word. In memory that
//!   was purged it is 0.
//! - SOURCE: the `source` of a domain's record is never null, and belongs to the holder of that domain's lock.
//! - ROOT: a live root's slot, or each of a wide one's, may be written by the root's owner if it holds a domain lock,
//!   and by the collector when no thread holds one.
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(not(boxroot_thread_words))]
pub use crate::c::{boxroot_create as create, boxroot_delete as delete, boxroot_modify as modify};
#[cfg(not(boxroot_thread_words))]
pub use crate::c::{
    boxroot_create_in as create_in, boxroot_delete_in as delete_in, boxroot_wide_modify as wide_modify,
};

#[cfg(boxroot_thread_words)]
pub use with_words::{create, delete, modify, wide_modify};
#[cfg(boxroot_thread_words = "ocaml4")]
pub use with_words::{create_in, delete_in};
#[cfg(boxroot_thread_words = "ocaml5")]
pub use without_words::{create_in, delete_in};

#[cfg(boxroot_thread_words)]
mod without_words {
    use crate::layout::{PoolHead, FREE_END, POOL_SIZE};
    #[cfg(boxroot_thread_words = "ocaml5")]
    use crate::{c, BoxrootDomain};
    use crate::{BoxRoot, Value, ValueCell};
    use core::ffi::c_void;
    use core::ptr::{addr_of, addr_of_mut, NonNull};
    use core::sync::atomic::{compiler_fence, AtomicPtr, Ordering::Relaxed, Ordering::Release};

    /// A word that other threads may write or compare at any time.
    ///
    /// # Safety
    /// `word` can be read for as long as the call lasts.
    #[inline(always)]
    pub unsafe fn load(word: *const AtomicPtr<c_void>) -> *mut c_void {
        // SAFETY: by the caller; all accesses to the word are atomic.
        unsafe { (*word).load(Relaxed) }
    }

    #[inline(always)]
    pub fn pool_of(br: BoxRoot) -> *mut PoolHead {
        (br.cell.as_ptr() as usize & !(POOL_SIZE - 1)) as *mut PoolHead
    }

    /// A slot of `pool`, now a root that holds `v`; `None` when its free list is empty.
    ///
    /// # Safety
    /// This thread may take slots of `pool` (WORDS or SOURCE).
    #[inline(always)]
    pub unsafe fn take(pool: *mut PoolHead, v: Value) -> Option<BoxRoot> {
        // SAFETY: by the caller and LIST.
        unsafe {
            let free = addr_of!((*pool).free).read();
            if free <= FREE_END {
                return None;
            }
            let slot = free.wrapping_sub(1) as *mut usize;
            let next = slot.read();
            slot.cast::<Value>().write(v);
            // The order of the two stores is a matter of speed, see inline.h.
            compiler_fence(Release);
            addr_of_mut!((*pool).free).write(next);
            Some(BoxRoot { cell: NonNull::new_unchecked(slot.cast::<ValueCell>()) })
        }
    }

    /// Ends the root, whose slot goes on the free list.
    ///
    /// # Safety
    /// `br` is live, `pool` is its pool, and this thread may free slots of it (WORDS).
    #[inline(always)]
    pub unsafe fn put(pool: *mut PoolHead, br: BoxRoot) {
        // SAFETY: by the caller; LIST holds again at the end.
        unsafe {
            let slot = br.cell.as_ptr().cast::<usize>();
            slot.write(addr_of!((*pool).free).read());
            addr_of_mut!((*pool).free).write((slot as usize).wrapping_add(1));
            let freed = addr_of_mut!((*pool).freed);
            freed.write(freed.read().wrapping_add(1));
        }
    }

    #[inline(always)]
    #[cfg(boxroot_thread_words = "ocaml5")]
    pub unsafe fn create_in(d: BoxrootDomain, v: Value) -> Option<BoxRoot> {
        // SAFETY: the caller holds the lock of `d`; SOURCE. The slow path has the contract of the fast one.
        unsafe {
            match take(addr_of!((*d.head.as_ptr()).source).read(), v) {
                None => c::bxr_create_in_slow(d, v),
                root => root,
            }
        }
    }

    #[inline(always)]
    #[cfg(boxroot_thread_words = "ocaml5")]
    pub unsafe fn delete_in(d: BoxrootDomain, br: BoxRoot) {
        let pool = pool_of(br);
        // SAFETY: POOLS; WORDS, since the caller holds the lock of `d`, which `state` identifies; no thread writes
        // `state` meanwhile, so a plain read will do. The slow path needs nothing but a live root.
        unsafe {
            let state = addr_of!((*d.head.as_ptr()).state).cast::<*mut c_void>().read();
            if load(addr_of!((*pool).free_owner)) == state {
                put(pool, br)
            } else {
                c::bxr_delete_slow(br)
            }
        }
    }
}

/// Whether the record is that of the domain whose lock this thread holds. `false` where that takes a call to find out.
///
/// # Safety
/// `boxroot_domain_here` returned the record.
#[inline(always)]
pub unsafe fn is_here(d: crate::BoxrootDomain) -> bool {
    #[cfg(boxroot_thread_words = "ocaml5")]
    // SAFETY: records are static; the word is atomic.
    return unsafe { without_words::load(core::ptr::addr_of!((*d.head.as_ptr()).state).cast()) == thread::lock() };
    #[cfg(not(boxroot_thread_words = "ocaml5"))]
    {
        let _ = d;
        false
    }
}

#[cfg(boxroot_thread_words)]
mod with_words {
    use super::thread;
    use super::without_words::{load, pool_of, put, take};
    #[cfg(boxroot_thread_words = "ocaml4")]
    use crate::BoxrootDomain;
    use crate::{c, BoxRoot, BoxRootWide, Value};
    use core::ptr::addr_of;

    #[cfg(boxroot_thread_words = "ocaml5")]
    #[inline(always)]
    pub unsafe fn create(v: Value) -> Option<BoxRoot> {
        let pool = thread::cache();
        // SAFETY: POOLS; WORDS. Without a lock the test can succeed with null on both sides, for memory that was given
        // back: then `free` is 0 (LIST), and nothing is taken.
        unsafe {
            if load(addr_of!((*pool).alloc_owner)) == thread::lock() {
                if let root @ Some(_) = take(pool, v) {
                    return root;
                }
            }
            c::bxr_create_slow(v)
        }
    }

    #[cfg(boxroot_thread_words = "ocaml4")]
    #[inline(always)]
    pub unsafe fn create(v: Value) -> Option<BoxRoot> {
        // SAFETY: with the lock of the only domain the cache may be read, and is that domain's current pool, or one
        // without slots.
        unsafe {
            if !thread::lock().is_null() {
                if let root @ Some(_) = take(c::bxr_cache.get().read(), v) {
                    return root;
                }
            }
            c::bxr_create_slow(v)
        }
    }

    #[inline(always)]
    pub unsafe fn delete(br: BoxRoot) {
        let pool = pool_of(br);
        // SAFETY: POOLS; WORDS: no owner is null. The slow path needs nothing but a live root.
        unsafe {
            if load(addr_of!((*pool).free_owner)) == thread::lock() {
                put(pool, br)
            } else {
                c::bxr_delete_slow(br)
            }
        }
    }

    #[inline(always)]
    pub unsafe fn modify(br: *mut BoxRoot, v: Value) -> bool {
        // SAFETY: `*br` is a live root of the caller's; POOLS; WORDS and ROOT. The slow path has the contract of the
        // fast one.
        unsafe {
            let root = br.read();
            if load(addr_of!((*pool_of(root)).store_owner)) == thread::lock() {
                root.cell.as_ptr().cast::<Value>().write(v);
                return true;
            }
            c::bxr_modify_slow(br, v)
        }
    }

    #[inline(always)]
    pub unsafe fn wide_modify(w: *mut BoxRootWide, i: usize, v: Value) -> bool {
        // SAFETY: as in `modify`; the wide root, whose slots are in one pool, has slot `i`.
        unsafe {
            let root = BoxRoot { cell: w.read().slots };
            if load(addr_of!((*pool_of(root)).store_owner)) == thread::lock() {
                root.cell.as_ptr().add(i).cast::<Value>().write(v);
                return true;
            }
            c::bxr_wide_modify_slow(w, i, v)
        }
    }

    #[cfg(boxroot_thread_words = "ocaml4")]
    #[inline(always)]
    pub unsafe fn create_in(d: BoxrootDomain, v: Value) -> Option<BoxRoot> {
        // SAFETY: the same contract. Handles of storages are odd (`boxroot/inline.h`).
        unsafe {
            if d.head.as_ptr() as usize & 1 != 0 {
                c::bxr_create_in_slow(d, v)
            } else {
                create(v)
            }
        }
    }

    #[cfg(boxroot_thread_words = "ocaml4")]
    #[inline(always)]
    pub unsafe fn delete_in(_: BoxrootDomain, br: BoxRoot) {
        // SAFETY: the same contract.
        unsafe { delete(br) }
    }
}

/// The thread-local words. In two steps, as compilers do it: the distance of the variable from the thread pointer,
/// which is the same for all threads and all times, so that it may be kept (`pure`, `nomem`: only the linker's table is
/// read); then the variable itself, which calls may change (`readonly`). Where another thread may overwrite it, it is
/// read anew in each operation (not `pure`).
#[cfg(boxroot_thread_words)]
mod thread {
    #[cfg(boxroot_thread_words = "ocaml5")]
    use crate::{c::versioned, layout::PoolHead};
    use core::arch::asm;
    use core::ffi::c_void;

    #[cfg(target_arch = "x86_64")]
    macro_rules! thread_word {
        ([$($reading:ident),+] $binding:literal $($name:tt)+) => {{
            let distance: usize;
            let word: *mut _;
            // SAFETY: the variable exists, in this model: build.rs makes sure that C uses the same. Nothing is written.
            unsafe {
                asm!(
                    concat!($binding, "mov {}, qword ptr [rip + ", $($name)+, "@GOTTPOFF]"),
                    out(reg) distance,
                    options(pure, nomem, nostack, preserves_flags)
                );
                asm!(
                    "mov {}, qword ptr fs:[{}]",
                    out(reg) word,
                    in(reg) distance,
                    options($($reading),+, nostack, preserves_flags)
                );
            }
            word
        }};
    }

    #[cfg(target_arch = "aarch64")]
    macro_rules! thread_word {
        ([$($reading:ident),+] $binding:literal $($name:tt)+) => {{
            let distance: usize;
            let word: *mut _;
            // SAFETY: the variable exists, in this model: build.rs makes sure that C uses the same. Nothing is written.
            unsafe {
                asm!(
                    concat!($binding, "adrp {0}, :gottprel:", $($name)+),
                    concat!("ldr {0}, [{0}, :gottprel_lo12:", $($name)+, "]"),
                    out(reg) distance,
                    options(pure, nomem, nostack, preserves_flags)
                );
                asm!(
                    "mrs {0}, tpidr_el0",
                    "ldr {0}, [{0}, {1}]",
                    out(reg) word,
                    in(reg) distance,
                    options($($reading),+, nostack, preserves_flags)
                );
            }
            word
        }};
    }

    /// `bxr_self()`: identifies the domain whose lock this thread holds; null when it holds none. Weak, as in C: what
    /// runs of the library at the start of a program must link in tests of crates, which may be without OCaml.
    #[cfg(boxroot_thread_words = "ocaml5")]
    #[inline(always)]
    pub fn lock() -> *mut c_void {
        thread_word!([pure, readonly] ".weak caml_state\n" "caml_state")
    }

    /// The pool from which this thread last took a slot; never null. It may be out of date.
    #[cfg(boxroot_thread_words = "ocaml5")]
    #[inline(always)]
    pub fn cache() -> *mut PoolHead {
        thread_word!([pure, readonly] "" versioned!("cache"))
    }

    /// `bxr_self()`: identifies the domain whose lock this thread holds; null when it holds none. Another thread may
    /// overwrite it.
    #[cfg(boxroot_thread_words = "ocaml4")]
    #[inline(always)]
    pub fn lock() -> *mut c_void {
        thread_word!([readonly] "" crate::c::versioned!("lock"))
    }
}
