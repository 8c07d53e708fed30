/* SPDX-License-Identifier: MIT */
/* The collection of cells. Between two major cycles what the markers noted becomes the work of a collection
   (hashcons_notes.h), if enough has happened since the last one. It is done in slices: with insertions, and at the end
   of the collector's own slices. If it is not done when the next cycle ends, notes gather for one cycle more. If it is
   far behind, or asked for by outheap_hashcons_collect_force, it is finished at that moment, by one domain.

   Invariants (docs/hashcons.md has the argument):
     a cell that a pointer leads to is noted in the current map, or was noted when the last collection began, or can be
     reached from such a cell by the fields of cells
     from CLOSE's end to SWEEP's end: a cell that a pointer leads to is marked
     stack and queue have the marked cells whose fields were not looked at, unless the stack has overflowed */
#ifndef OUTHEAP_HASHCONS_COLLECT_H
#define OUTHEAP_HASHCONS_COLLECT_H

#include "hashcons_table.h"

struct outheap_hashcons_collect {
  size_t collections, late; /* late: that had to be finished when the next cycle ended */
};
extern struct outheap_hashcons_collect outheap_hashcons_collect; /* counters */

/* Once, before the first table. */
void outheap_hashcons_collect_start(void);

/* A pointer to this cell, which is not dead, is given out, or it was just filled. With the lock. */
void outheap_hashcons_collect_touch(outheap_hashcons_cell *);

/* A slice: looks at about so many cells, slots or words of bitmaps. Takes the lock. Does nothing while none runs. */
void outheap_hashcons_collect_slice(size_t work);

/* What is left of the running collection. Takes the lock again and again. Result: one was running. */
bool outheap_hashcons_collect_finish(void);

/* Once more on than off, each cycle of the collector has a collection; otherwise those that are worth their while. */
void outheap_hashcons_collect_force(bool on);

/* To be called now and then by whoever made so many cells: a slice, and the collector learns how much was allocated.
   Holds OCaml's lock, not ours. */
void outheap_hashcons_collect_pace(size_t cells);

/* Words were allocated. With the lock. */
void outheap_hashcons_collect_allocated(size_t words);

#endif
