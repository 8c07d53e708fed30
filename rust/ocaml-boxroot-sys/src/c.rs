// SPDX-License-Identifier: MIT
//! What this crate uses of the C library without making it public, by the names of the header. Linkers see other names:
//! they carry the version of the layout, so that two versions in one process never bind to each other, and what program
//! and library must agree on: all of them in the checked build, in the release build those that only inline code uses.
//! tests/header.rs compares all of them with what the compiler makes of the header.
#![allow(dead_code)] // each build uses some

#[cfg(not(feature = "checked"))]
macro_rules! versioned {
    ($name:literal) => {
        concat!("boxroot_v5_", $name)
    };
}
#[cfg(feature = "checked")]
macro_rules! versioned {
    ($name:literal) => {
        concat!(
            "boxroot_v5_",
            $name,
            "__program_and_library_must_agree_on__BOXROOT_DEBUG_1__POOL_LOG_SIZE_14__POOL_CAPACITY_1000000",
            "__FORCE_REMOTE_0__THREAD_UNSAFE_0"
        )
    };
}
/// Of what is not part of the interface: not in the checked build.
macro_rules! agreed {
    ($name:literal) => {
        concat!(
            "boxroot_v5_",
            $name,
            "__program_and_library_must_agree_on__BOXROOT_DEBUG_0__POOL_LOG_SIZE_14__POOL_CAPACITY_1000000",
            "__FORCE_REMOTE_0__THREAD_UNSAFE_0__OCAML_",
            env!("BOXROOT_OCAML")
        )
    };
}
pub(crate) use versioned;

use crate::{BoxRoot, BoxRootWide, BoxrootDomain, Value, ValueCell};

extern "C" {
    // The functions that src/inline.rs has in Rust.
    #[link_name = versioned!("create")]
    pub fn boxroot_create(v: Value) -> Option<BoxRoot>;
    #[link_name = versioned!("delete")]
    pub fn boxroot_delete(br: BoxRoot);
    #[link_name = versioned!("modify")]
    pub fn boxroot_modify(br: *mut BoxRoot, v: Value) -> bool;
    #[link_name = versioned!("create_in")]
    pub fn boxroot_create_in(d: BoxrootDomain, v: Value) -> Option<BoxRoot>;
    #[link_name = versioned!("delete_in")]
    pub fn boxroot_delete_in(d: BoxrootDomain, br: BoxRoot);
    #[link_name = versioned!("get_ref")]
    pub fn boxroot_get_ref(br: BoxRoot) -> *const ValueCell;
    #[link_name = versioned!("wide_modify")]
    pub fn boxroot_wide_modify(w: *mut BoxRootWide, i: usize, v: Value) -> bool;
    #[link_name = versioned!("wide_ref")]
    pub fn boxroot_wide_ref(w: BoxRootWide, i: usize) -> *const ValueCell;

    // What they call when the fast path does not apply.
    #[cold]
    #[link_name = agreed!("create_slow")]
    pub fn bxr_create_slow(v: Value) -> Option<BoxRoot>;
    #[cold]
    #[link_name = agreed!("create_in_slow")]
    pub fn bxr_create_in_slow(d: BoxrootDomain, v: Value) -> Option<BoxRoot>;
    #[cold]
    #[link_name = agreed!("delete_slow")]
    pub fn bxr_delete_slow(br: BoxRoot);
    #[cold]
    #[link_name = agreed!("modify_slow")]
    pub fn bxr_modify_slow(br: *mut BoxRoot, v: Value) -> bool;
    #[cold]
    #[link_name = agreed!("wide_modify_slow")]
    pub fn bxr_wide_modify_slow(w: *mut BoxRootWide, i: usize, v: Value) -> bool;

    /// The pool from which new roots come; never null.
    #[cfg(boxroot_thread_words = "ocaml4")]
    #[link_name = versioned!("cache")]
    pub static bxr_cache: core::cell::UnsafeCell<*mut crate::layout::PoolHead>;
}
