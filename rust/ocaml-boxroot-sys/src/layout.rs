// SPDX-License-Identifier: MIT
//! The words of the C library that the fast paths touch, as in `boxroot/inline.h`. tests/header.rs compares them with
//! the header. A library with another layout has other link names, so a program that mixes the two does not link.

#![allow(dead_code)] // the checked build leaves all to C

use core::ffi::c_void;
use core::sync::atomic::AtomicPtr;

/// `bxr_pool_head`: the head of a pool. The first three words may be compared by any thread; the others belong to the
/// domain that a comparison word names.
#[repr(C)]
pub struct PoolHead {
    pub free_owner: AtomicPtr<c_void>,
    pub alloc_owner: AtomicPtr<c_void>,
    pub store_owner: AtomicPtr<c_void>,
    pub others: [*mut c_void; 5],
    pub free: usize,
    pub freed: u32,
    pub active: u32,
}

/// `bxr_domain_head`: what callers of `boxroot_create_in` know of a domain's record.
#[repr(C)]
pub struct DomainHead {
    pub state: AtomicPtr<c_void>,
    pub source: *mut PoolHead,
}

/// `BXR_POOL_SIZE`: pools are aligned on their size.
pub const POOL_SIZE: usize = 1 << 14;

/// `BXR_FREE_END`: the end of a free list.
pub const FREE_END: usize = 1;
