/* SPDX-License-Identifier: MIT */
/* The collection of cells. Between two major cycles the reach bits of the last one become the work of a collection
   (hashcons_memory.h), if enough has happened since the last collection. It is done in slices: with insertions, and at
   the end of the collector's own slices. If it is not done when the next cycle ends, reach bits gather for one cycle
   more. If it is far behind, or asked for by outheap_hashcons_collect_force, one domain finishes it at that moment.

   Invariants (docs/internals/proofs.md has the argument):
     a cell that a pointer leads to has its reach bit set in the current bitmap, or had it set when the last collection
     began, or can be reached from such a cell by the fields of cells
     from CLOSE's end to SWEEP's end: a cell that a pointer leads to is marked
     stack and queue have the marked cells whose fields were not visited, unless the stack has overflowed */
#ifndef OUTHEAP_HASHCONS_COLLECT_H
#define OUTHEAP_HASHCONS_COLLECT_H

#include "hashcons_table.h"

struct outheap_hashcons_collect {
  size_t collections, late; /* late: that had to be finished when the next cycle ended */
};
extern struct outheap_hashcons_collect outheap_hashcons_collect; /* counters */

/* To be called once, before the first table is made. */
void outheap_hashcons_collect_start(void);

/* To be called when a pointer to this cell, which is not dead, is given out, or when it was just filled. The caller has
   the lock. */
void outheap_hashcons_collect_touch(outheap_hashcons_cell *);

/* Does a slice of the running collection: about so many cells, slots or words of bitmaps. Takes the lock. */
void outheap_hashcons_collect_slice(size_t work);

/* Finishes the running collection. Takes the lock again and again. Returns whether one was running. */
bool outheap_hashcons_collect_finish(void);

/* While it was called more often with `on` than without, each major cycle has a collection; otherwise those that are
   worth their while. */
void outheap_hashcons_collect_force(bool on);

/* To be called now and then by whoever made so many cells: does a slice, and tells the collector how much was
   allocated. The caller holds OCaml's lock, not that of this library. */
void outheap_hashcons_collect_pace(size_t cells);

/* To be called when words were allocated. The caller has the lock. */
void outheap_hashcons_collect_allocated(size_t words);

#endif
