/* SPDX-License-Identifier: MIT */
/* The range of addresses in which the marked spaces (OH_KIND_MAJOR) and regions (OH_KIND_REGION) have their chunks: the
   place of regions, and the first parts of the zone.
   While all of their chunks lie there, the marking loop need not ask the table about each word: one comparison passes
   over immediates, static data and nearly all foreign pointers, and the table is asked about the pointers that are
   left. Minor heaps and the stock are in the range too, so that the table sees foreign pointers to where they may grow.

     whole  =>  each chunk of kind OH_KIND_MAJOR or OH_KIND_REGION lies in [base, base + size)
     not whole now  =>  not whole ever after

   A marker may look at `whole` once for as long as it does not wait for others. A chunk outside of the range is claimed
   before its first block is allocated. Blocks that are allocated while a marker runs are marked already, so that it may
   pass over them; all others were allocated before a stop of all domains, after which every marker sees the change. */
#ifndef OH_MARKED_H
#define OH_MARKED_H

#include "atomic.h"
#include <stdbool.h>
#include <stdint.h>

struct oh_marked { uintptr_t base, size; bool whole; };
extern struct oh_marked oh_marked;

/* Before the first claim. The range must lie within the table. A size of 0: there is no such range. */
void oh_marked_start(uintptr_t base, uintptr_t size);

/* To be called for each piece of address space of the marked spaces, before it is used. */
void oh_marked_claimed(uintptr_t base, uintptr_t size);

static inline bool oh_marked_is_whole(void) { return oh_load_relaxed(&oh_marked.whole); }

#endif
