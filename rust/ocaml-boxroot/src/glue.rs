// SPDX-License-Identifier: MIT
//! The functions of glue/. None but `obx_raise`, `obx_refuse_data` and `obx_seal` raises. What each needs, and whether
//! it may run the collector, is said there.
use core::ffi::{c_char, c_int, c_void};
use core::ptr::NonNull;

/// `struct custom_operations`
#[repr(C)]
pub struct Operations {
    pub identifier: *const c_char,
    pub finalize: Option<extern "C" fn(isize)>,
    pub compare: Option<extern "C" fn(isize, isize) -> c_int>,
    pub hash: Option<extern "C" fn(isize) -> isize>,
    pub serialize: Option<extern "C" fn(isize, *mut usize, *mut usize)>,
    pub deserialize: Option<extern "C" fn(*mut c_void) -> usize>,
    pub compare_ext: Option<extern "C" fn(isize, isize) -> c_int>,
    pub fixed_length: *const FixedLength,
}
// SAFETY: never written.
unsafe impl Sync for Operations {}

/// `struct custom_fixed_length`: the size of the data of a block with 32-bit and 64-bit words.
#[repr(C)]
pub struct FixedLength {
    pub narrow: isize,
    pub wide: isize,
}

/// `obx_reserve_result`
#[repr(C)]
pub struct Reserve {
    pub at: *mut usize,
    pub piece_end: *mut usize,
    pub end: *mut usize,
    pub color: usize,
    pub surplus: usize,
}

/// `obx_range`
#[repr(C)]
pub struct Range {
    pub start: usize,
    pub end: usize,
}

/// `struct caml__roots_block`
#[repr(C)]
pub struct RootsBlock {
    pub next: *mut RootsBlock,
    pub tables: isize,
    pub items: isize,
    pub table: [*mut isize; 5],
}

/// `HELD` in glue/lock.c: the state of a thread that holds the lock by way of this crate.
#[cfg(all(not(ocaml5), feature = "std"))]
pub const HELD: c_int = 1;

/// As in `caml/fail.h`, for `obx_builtin`.
pub const OUT_OF_MEMORY: c_int = 0;
pub const SYS_ERROR: c_int = 1;
pub const FAILURE: c_int = 2;
pub const INVALID_ARGUMENT: c_int = 3;
pub const END_OF_FILE: c_int = 4;
pub const DIVISION_BY_ZERO: c_int = 5;
pub const NOT_FOUND: c_int = 6;
pub const STACK_OVERFLOW: c_int = 8;

/// A part of what an OCaml module of this crate hands over: the kind of the block, as in `glue/sealed.c`, and the place
/// in the module's tuple.
pub type Part = (c_int, usize);
/// The constructors `Rust_panic` and `Rust_error`, and functions of `Printexc`.
pub const PANIC: Part = (0, 0);
pub const ERROR: Part = (0, 1);
pub const PRINT: Part = (0, 2);
pub const BACKTRACE: Part = (0, 3);
pub const BACKTRACE_SLOTS: Part = (0, 4);
/// `Domain.spawn`, for a job, and `Domain.join`.
#[cfg(feature = "std")]
pub const SPAWN: Part = (1, 0);
#[cfg(feature = "std")]
pub const JOIN: Part = (1, 1);

/// The words in a piece of the minor heap that a nursery reserves.
pub const PIECE: usize = 257;

/// Declares functions of the glue, which have the crate's version behind their names in C.
macro_rules! glue_functions {
    ($($(#[$attribute:meta])* $vis:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        extern "C" {$(
            $(#[$attribute])*
            #[link_name = concat!(stringify!($name), "_v", env!("OBX_VERSION"))]
            $vis fn $name($($argument: $type),*) $(-> $result)?;
        )*}
    };
}
pub(crate) use glue_functions;

extern "C" {
    /// For blocks without outside memory. May run the collector.
    pub fn caml_alloc_custom(operations: *const Operations, size: usize, used: usize, most: usize) -> isize;
    pub static caml_int32_ops: c_void;
    pub static caml_int64_ops: c_void;
    pub static caml_nativeint_ops: c_void;
    #[link_name = concat!("obx_local_roots_v", env!("OBX_VERSION"))]
    pub static obx_local_roots: usize;
    /// The state of the only domain.
    #[cfg(not(ocaml5))]
    pub static Caml_state: core::sync::atomic::AtomicPtr<c_void>;
}

glue_functions! {
    pub fn obx_enter(before: *mut c_int) -> Option<NonNull<c_void>>;
    pub fn obx_lock_state() -> *mut c_int;
    #[cfg(feature = "std")]
    pub fn obx_threads_settled() -> bool;
    pub fn obx_release() -> c_int;
    pub fn obx_reacquire(before: c_int);
    pub fn obx_attach(domain: *mut Option<NonNull<c_void>>) -> c_int;
    pub fn obx_detach(how: c_int);
    #[cfg(feature = "start")]
    pub fn obx_running() -> bool;
    #[cfg(feature = "start")]
    pub fn obx_close();
    #[cfg(feature = "start")]
    pub fn obx_stack_starting();
    #[cfg(feature = "start")]
    pub fn obx_started() -> bool;

    pub fn obx_poll() -> isize;
    pub fn obx_minor();
    pub fn obx_full_major() -> isize;
    pub fn obx_compact() -> isize;

    pub fn obx_reserve(words: usize, out: *mut Reserve);
    #[cfg(feature = "checked")]
    pub fn obx_refuse_after(blocks: core::ffi::c_long);
    pub fn obx_young() -> Range;
    pub fn obx_alloc_major(size: usize, tag: u32) -> isize;
    pub fn obx_alloc_major_filled(size: usize, tag: u32, fields: *const isize) -> isize;
    pub fn obx_alloc_string(length: usize) -> isize;
    pub fn obx_alloc_float(x: f64) -> isize;
    pub fn obx_atom(tag: u32) -> isize;
    pub fn obx_alloc_custom(operations: *const Operations, size: usize, bytes: usize) -> isize;

    fn obx_call1(closure: isize, a: isize) -> isize;
    fn obx_call2(closure: isize, a: isize, b: isize) -> isize;
    fn obx_call3(closure: isize, a: isize, b: isize, c: isize) -> isize;
    fn obx_call_more(closure: isize, count: usize, arguments: *mut isize) -> isize;
    pub fn obx_named(name: *const c_char) -> isize;
    pub fn obx_seal(kind: c_int, contents: isize) -> isize;
    pub fn obx_sealed(kind: c_int) -> isize;
    #[cfg(feature = "std")]
    pub fn obx_job(run: unsafe extern "C" fn(*mut c_void), data: *mut c_void) -> isize;
    #[cfg(feature = "std")]
    pub fn obx_take_job(job: isize) -> *mut c_void;
    pub fn obx_run_job(job: isize) -> bool;
    pub fn obx_builtin(which: c_int) -> isize;
    pub fn obx_traced(exn: isize) -> isize;
    pub fn obx_raise(exn: isize) -> !;
    #[cfg(feature = "std")]
    pub fn obx_refuse_data(message: *const c_char) -> !;

    pub fn obx_modify(field: *mut isize, v: isize);
    pub fn obx_initialize(field: *mut isize, v: isize);
    pub fn obx_atomic_get(field: *mut isize) -> isize;
    pub fn obx_atomic_exchange(field: *mut isize, v: isize) -> isize;
    pub fn obx_atomic_cas(field: *mut isize, old: isize, new: isize) -> bool;
    pub fn obx_atomic_add(field: *mut isize, n: isize) -> isize;
}

/// # Safety
/// For all four: this thread holds the lock; the arguments are valid values, of the types that the function takes.
#[inline]
pub unsafe fn call1(closure: isize, [a]: [isize; 1]) -> isize {
    // SAFETY: by the caller.
    unsafe { obx_call1(closure, a) }
}

#[inline]
pub unsafe fn call2(closure: isize, [a, b]: [isize; 2]) -> isize {
    // SAFETY: by the caller.
    unsafe { obx_call2(closure, a, b) }
}

#[inline]
pub unsafe fn call3(closure: isize, [a, b, c]: [isize; 3]) -> isize {
    // SAFETY: by the caller.
    unsafe { obx_call3(closure, a, b, c) }
}

#[inline]
pub unsafe fn call_more<const N: usize>(closure: isize, mut arguments: [isize; N]) -> isize {
    // SAFETY: by the caller.
    unsafe { obx_call_more(closure, N, arguments.as_mut_ptr()) }
}

/// For tests, in the checked build: the next `blocks` blocks in the major heap are allocated on this thread, the one
/// after them is refused as if memory were short. Negative: none is.
#[cfg(feature = "checked")]
#[doc(hidden)]
pub fn refuse_after(blocks: i32) {
    // SAFETY: the function needs nothing.
    unsafe { obx_refuse_after(blocks.into()) }
}
