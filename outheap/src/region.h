/* SPDX-License-Identifier: MIT */
/* Regions, as the collector sees them: chunks of kind OH_KIND_REGION, which hold values that are neither marked nor
   moved, and of which it can tell whether any pointer still leads there. What a region is made of, and what becomes of
   it, is decided by the library that owns it (outheap/region); here are only its chunks and what the marker met.

   The marker comes across a pointer to a region wherever it comes across a pointer to a block of the heap: in roots,
   stacks, fields, in what the deletion barrier darkens. It does not follow it, but notes the chunk. Keys of weak
   pointers and ephemerons are noted when they are cleaned, which is before the cycle ends.

     a pointer into a chunk is reachable when marking begins, or is obtained from such a place or by outheap_marker_meet
     from then on   =>   the chunk is noted when the cycle ends

   (Blocks that are allocated while marking runs are not looked at. But what they point to was reachable when it began,
   or was met.) So a chunk that was not noted in a whole cycle has no pointer to it, and none can come into being. Up to
   OCaml 5.4 marking begins with the cycle; in 5.5 a cycle first only sweeps. docs/regions.md has the argument in full.

   Chunks with cells (OH_REGION_CELLS) are noted word by word instead: their first OH_REGION_MAP bytes, and the same
   number after them, are two bitmaps with a bit for each word of the chunk. One of the two is written to.
   docs/hashcons.md has what that is for. */
#ifndef OH_REGION_H
#define OH_REGION_H

#include "atomic.h"
#include "config.h"
#include "table.h"
#include "track.h"

/* Where the marker found the pointer. */
enum oh_region_by { OH_REGION_BY_ROOT = 1, OH_REGION_BY_BLOCK = 2 };

/* For each chunk: who met a pointer to it since the owner last cleared it. Markers store a bit only where it is not set
   yet; two that do so at the same time may lose one of two bits, but never both. In chunks with cells: OH_REGION_CELLS,
   with OH_REGION_SECOND if the second bitmap is the one that is written to; markers never store there. */
extern uint8_t oh_region_notes[OH_TABLE_ENTRIES];
enum { OH_REGION_CELLS = 4, OH_REGION_SECOND = 8 };
#define OH_REGION_MAP (OH_CHUNK / 64)

/* Notes a pointer to a word of a chunk with cells, whose note is given. */
void oh_region_meet_cell(uintptr_t address, uint8_t note);

/* Pointers to these chunks are counted. */
struct oh_region_watch { uintptr_t begin, size; size_t met; };
extern struct oh_region_watch oh_region_watch;

static inline void oh_region_note(uintptr_t address, enum oh_region_by by)
{
  uint8_t *note = &oh_region_notes[address >> OH_CHUNK_LOG], n = oh_load_relaxed(note);
  if (n & OH_REGION_CELLS) {
    oh_region_meet_cell(address, n);
    return;
  }
  if ((n & by) == 0) oh_store_relaxed(note, (uint8_t)(n | by));
  if (__builtin_expect(address - oh_load_relaxed(&oh_region_watch.begin) < oh_load_relaxed(&oh_region_watch.size), 0))
    (void)oh_fetch_add_relaxed(&oh_region_watch.met, 1);
}

/* The same, and what a tracked region (track.h) refers to is darkened. */
static inline void oh_region_meet(uintptr_t address, enum oh_region_by by)
{
  oh_region_note(address, by);
  oh_track_meet(address);
}

/* Functions to be called between two cycles, while all domains are stopped and nothing of the new cycle is marked yet
   (`cycle`), and then by one domain when they run again (`cycled`). Neither may call OCaml or allocate in its heap. The
   record stays for ever. */
struct oh_region_owner { void (*cycle)(void); void (*cycled)(void); struct oh_region_owner *next; };
void oh_region_add_owner(struct oh_region_owner *);

/* For the overlay. Set when the runtime starts, if it calls the three functions: between two cycles; when marking
   begins (at the same moment or later; all domains are stopped, and nothing was darkened since the cycle began); and
   when domains run again after the first. */
extern bool oh_region_has_cycles;
void oh_region_cycle(void);
void oh_region_mark(void);
void oh_region_cycled(void);

#endif
