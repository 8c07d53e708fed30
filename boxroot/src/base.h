/* SPDX-License-Identifier: MIT */
/* What every file of the library is compiled with; all others include it first: linkage, assertions, atomic accesses,
   and the words of boxroot/inline.h that the library defines. */
#ifndef BXR_BASE_H
#define BXR_BASE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef CAML_NAME_SPACE
#define CAML_NAME_SPACE
#endif
#ifndef CAML_INTERNALS
#define CAML_INTERNALS
#endif
#define BXR_LIBRARY

#include <boxroot.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Linkage of names that are not part of the interface: they are static in the single compilation unit (all.c), so that
   two copies of the library, or two versions, never bind to each other. When files are compiled one by one they are
   hidden in the shared object. */
#ifdef BXR_ONE_UNIT
#define BXR_INTERNAL static __attribute__((unused))
#define BXR_INTERNAL_DATA static
#define BXR_INTERNAL_DATA_HERE static
#else
#define BXR_INTERNAL __attribute__((visibility("hidden")))
#define BXR_INTERNAL_DATA extern __attribute__((visibility("hidden")))
#define BXR_INTERNAL_DATA_HERE
#endif

/* --- faults and assertions ---------------------------------------------------------------------------------------- */

/* Prints "boxroot: " and the message on the standard error output and aborts. */
BXR_INTERNAL __attribute__((noreturn, format(printf, 1, 2))) void bxr_fault(char const *format, ...);

/* States what must hold; the checked build ends the program where it does not. A release build does not evaluate it and
   tells the compiler nothing, so a broken invariant never turns into undefined behaviour that the checked build would
   catch. */
#if BOXROOT_DEBUG
#define BXR_ASSERT(c) ((c) ? (void)0 : bxr_fault("assertion failed: %s (%s:%d)", #c, __FILE__, __LINE__))
#else
#define BXR_ASSERT(c) ((void)sizeof(!(c)))
#endif

/* --- atomic accesses ---------------------------------------------------------------------------------------------- */

/* The memory order is in each name. The builtins work on plain types, so that the same structures can be declared in
   headers that C++ reads. bxr_load_relaxed is in boxroot/inline.h, where the inline paths use it.

   Each order is used for these words, for these reasons:
   relaxed   - words that other domains only compare with their own identity: free_owner, alloc_owner and store_owner of
               a pool, the state of a record, and a pool's home where an outdated answer merely makes the deletion a
               remote one; counters; and first looks, before a read-modify-write that decides;
   acquire,  - flags that say that something is ready: the status of the library, whether the hooks are attached,
   release     whether OCaml has shut down; the runtime's hooks, and what is called after ours; the name of a storage,
               and what it has of domains (records.h: who clears it has its roots to himself, and the domains find the
               new name by whatever told them that they may use it); in the checked build, the records of slots;
   acq_rel   - the bitmaps of pending deletions: the deleter's last use of a slot happens before its reuse by the owner;
   seq_cst   - a pool's home and the list of pending pools of that home (delete.c). One side stores the home and takes
               the list; the other adds to the list and reads the home again: at least one of them must see the other.
               The depot and the orphans use it too, where less would do but nothing would be gained. */
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

/* The runtime's hooks are _Atomic objects, which only C11's functions take. A hook is published (release) after what it
   needs. */
#define bxr_hook_load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define bxr_hook_cas_release(p, expected, v) \
  atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_release, memory_order_relaxed)
#define bxr_fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)

/* A counter that one domain writes and others may read: no atomic read-modify-write is needed. */
#define bxr_count(p, n) bxr_store_relaxed((p), bxr_load_relaxed(p) + (n))

/* --- words of the inline paths ------------------------------------------------------------------------------------ */

/* A pool without slots. The inline paths of creation find it where they must take the slow path. */
BXR_INTERNAL_DATA bxr_pool_head bxr_no_pool;

#if !BXR_OCAML5 && BOXROOT_THREAD_UNSAFE
#define bxr_lock bxr_self_lock /* the inline paths do not compare it, but it is kept */
BXR_INTERNAL_DATA BXR_THREAD_LOCAL void *bxr_lock;
#endif

#endif
