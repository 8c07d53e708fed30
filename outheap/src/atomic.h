/* SPDX-License-Identifier: MIT */
/* Atomic accesses, with the memory order in each name.

   Orders in use, and why:
   relaxed   counters; flags of a chunk that only its space acts upon;
   acquire,  words of the fine table and its version (ranges.c), so that a reader who saw a new word sees the new version too; records that
   release   are prepared before others may find them (chunk.c);
   seq_cst   the table's compare-and-swap, together with the flag of the report (table.c): who taints reads the flag again afterwards, who sets the
             flag sweeps afterwards; both must not miss each other. */
#ifndef OH_ATOMIC_H
#define OH_ATOMIC_H

#define oh_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define oh_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define oh_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define oh_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define oh_load_seq_cst(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define oh_store_seq_cst(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define oh_fetch_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define oh_fetch_add_seq_cst(p, v) __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
/* On failure *expected is refreshed. Never fails without a reason. */
#define oh_cas_seq_cst(p, expected, v) __atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

#endif
