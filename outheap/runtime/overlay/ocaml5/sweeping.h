/* SPDX-License-Identifier: MIT */
/* Pools that the helper (helper_thread.h) sweeps. When a cycle begins, each domain hands over the lists of its unswept
   pools, as they are. The helper sweeps pools; their owner collects them, and may take unswept ones back at any time.
   So a pool of small blocks that was handed over is

     queued    unswept, in a list of its heap's queue
     in hand   being swept by the helper, in no list
     back      swept, in a list of its heap's queue; or with finalisers to call, which only its owner does
     collected in the lists of its owner, which is not told from one that was never handed over

     a heap has `handed`   =>   it is in the list of such heaps, and sweeping_done of its owner is 0
     a pool is queued, in hand, or back   =>   its heap has `handed`
     the owner of a pool reads and writes it only while it is collected; the helper only while it is in hand
     the statistics of a heap are its owner's: what the helper has changed is added when it collects

   The lock (the queue's) protects all that is not collected. Nobody holds it for longer than some hundred instructions.
   Domains try it some times where they may not wait; then they go on without. It is taken within the helper's lock, and
   none is taken within it. The functions are in sweep_queue.h, a part of shared_heap.c.

   Large blocks stay with their domain: sweeping one reads one header, and gives memory back. */
#ifndef OH_SWEEPING_H
#define OH_SWEEPING_H

#include "prelude.h"

/* Is there a helper in this runtime? Where it is not: OCaml up to 5.3 has other counters. ARM64: see
   docs/internals/helper.md. The marker of the flavour that counts, and the one for comparison, are the runtime's. */
#if defined __x86_64__ && OCAML_VERSION >= 50400 && !OH_COUNT && !defined OH_STOCK_MARKING
#define OH_HELPER 1
#else
#define OH_HELPER 0
#endif

#if OH_HELPER
enum { OH_SWEEPING_ALL = -1 };

/* Memory for a heap of `bytes`, with its queue behind it; NULL: there is none. */
void *oh_sweeping_heap(size_t bytes);

/* In a domain, for its own heap. */

/* Hands all unswept pools over. All domains are stopped, or are about to run: the colours have changed, and the heap
   was compacted if it is to be. Without the lock nothing is handed over. Cost: it does not depend on their number. */
void oh_sweeping_hand_over(struct caml_heap_state *heap);

/* Was it done in this cycle, and is not all of it collected? */
bool oh_sweeping_is_handed(struct caml_heap_state *heap);

/* Collects what is back. Of empty pools, no more than `most` are given up, and the others in a later call. Result: the
   work, as the runtime counts it. Waits for the lock only if `most` is OH_SWEEPING_ALL. */
intnat oh_sweeping_collect(struct caml_heap_state *heap, int most);

/* Takes up to `most` queued pools, for caml_sweep. False: there are none, or the lock is not to be had at once. */
bool oh_sweeping_take(struct caml_heap_state *heap, unsigned most);

/* When caml_sweep has found no more: is all collected? Then the heap is as if nothing had been handed over. */
bool oh_sweeping_ends(struct caml_heap_state *heap);

/* For the helper's thread. */

/* Are there queued pools of any heap? That may be out of date. */
bool oh_sweeping_waits(void);

/* Sweeps some pools of one heap. Result: how many. */
unsigned oh_sweeping_batch(void);

/* Are there no heaps with `handed`? For a check: true as well if the lock is not to be had at once. */
bool oh_sweeping_is_idle(void);

/* Over a fork, with no pool in hand. */
void oh_sweeping_lock(void);
void oh_sweeping_unlock(void);
#endif
#endif
