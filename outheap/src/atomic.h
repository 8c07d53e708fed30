/* SPDX-License-Identifier: MIT */
/* Atomic accesses, with the memory order in each name.

   Orders in use, and why:
   relaxed   counters; entries of the table and bytes of page.h, where whoever holds a pointer has them ordered already
             (table.h); notes of the markers, which are read while all domains are stopped (region.h);
   acquire,  the ranges and their version (ranges.c): a reader that saw a new word also sees the new version;
   release   records that are filled before other threads can find them (pagemap.h);
   acq_rel   bits of track.h, which are set after a store and cleared before a load; whoever is the first to meet a
             region; the list of regions that wait for the marker, which is taken as a whole by exchange, and put back
             by compare-and-swap: whoever takes it sees how far the last one came;
   seq_cst   the table's compare-and-swap, together with the flag of the report (table.h, pointer.c): a thread that
             taints a chunk reads the flag afterwards, and a thread that sets the flag sweeps the table afterwards, so
             at least one of them sees the other. */
#ifndef OH_ATOMIC_H
#define OH_ATOMIC_H

#define oh_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define oh_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define oh_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define oh_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define oh_load_seq_cst(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define oh_store_seq_cst(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define oh_fetch_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define oh_fetch_or_relaxed(p, v) __atomic_fetch_or((p), (v), __ATOMIC_RELAXED)
#define oh_or_acq_rel(p, v) ((void)__atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL))
#define oh_and_acq_rel(p, v) ((void)__atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL))
#define oh_exchange_acq_rel(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define oh_fetch_add_seq_cst(p, v) __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
/* On failure *expected becomes the value that was found. Never fails spuriously. */
#define oh_cas_seq_cst(p, expected, v) \
  __atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

#endif
