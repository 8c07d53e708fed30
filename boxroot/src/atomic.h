/* SPDX-License-Identifier: MIT */
/* Atomic accesses, with the memory order in each name. The builtins work on plain types, so that the same structures
   can be declared in headers that C++ reads. bxr_load_relaxed is in boxroot/inline.h, where the inline paths use it.

   Orders in use, and why:
   relaxed   words that only their own domain acts upon; everybody else merely compares them (owner, maker, young_owner,
             state, home), and counters;
   acquire,  flags that tell that something is ready: the status of the library, whether the hooks are attached, whether
             OCaml has
   release   shut down; the runtime's hooks, and what is called after ours; in the checked build, the records of slots;
   acq_rel   the bitmaps of pending deletions: the deleter's last use of a slot happens before its reuse by the owner;
   seq_cst   a home and the list of pending pools that belongs to it (remote.c), where one side stores the home and
             takes the list, the other adds to the list and reads the home again: at least one of them must see the
             other. Also the depot and the orphans, where less would do but nothing would be gained. */
#ifndef BXR_ATOMIC_H
#define BXR_ATOMIC_H

#include "base.h"

#define bxr_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define bxr_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define bxr_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define bxr_load_seq_cst(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define bxr_store_seq_cst(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define bxr_exchange_acq_rel(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define bxr_exchange_seq_cst(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define bxr_fetch_add_acq_rel(p, v) __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define bxr_fetch_or_seq_cst(p, v) __atomic_fetch_or((p), (v), __ATOMIC_SEQ_CST)
#define bxr_fetch_and_seq_cst(p, v) __atomic_fetch_and((p), (v), __ATOMIC_SEQ_CST)
#define bxr_add_relaxed(p, v) ((void)__atomic_fetch_add((p), (v), __ATOMIC_RELAXED))

/* Compare-and-swap, which may fail spuriously. On failure *expected is refreshed. */
#define bxr_cas_seq_cst(p, expected, v) \
  __atomic_compare_exchange_n((p), (expected), (v), 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)
#define bxr_cas_acq_rel(p, expected, v) \
  __atomic_compare_exchange_n((p), (expected), (v), 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)

/* The runtime's hooks are _Atomic objects, which only C11's functions take. Relaxed, release: a hook is published after
   what it needs. */
#define bxr_hook_load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define bxr_hook_cas_release(p, expected, v) \
  atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_release, memory_order_relaxed)
#define bxr_fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)

/* A counter that one domain writes and others may read: no atomic read-modify-write is needed. */
#define bxr_count(p, n) bxr_store_relaxed((p), bxr_load_relaxed(p) + (n))

#endif
