/* SPDX-License-Identifier: MIT */
/* The page table: one byte for each chunk of the address space, its kind (a "big bag of pages"). It is zero-initialised
   static memory, whose pages become resident when they are touched; there is nothing to set up.

   Invariant (monotonicity): an entry changes from OH_KIND_UNKNOWN to one kind and keeps it, except that the foreign
   kinds (oh_kind_is_foreign) may replace each other, and that OH_KIND_REGION may become OH_KIND_REVOKED.

   Who sees an entry when. A thread that holds a pointer into a chunk got it, directly or through other threads, from
   the thread that allocated there after the entry had been written. A load whose address depends on that pointer sees
   the entry, on all processors. So plain loads are enough for pointers to the heap. What they cannot show is a pointer
   that is foreign now, to an address where the heap will be placed later. Two protocols:
     taint (OH_TAINT = 1)  a marker that finds OH_KIND_UNKNOWN changes it to OH_KIND_FOREIGN by compare-and-swap. A
                           reservation that finds its chunk tainted leaves the chunk unused and tries elsewhere. This
                           happens once per chunk, off the fast path.
     dependency ordering   nothing is written; a chunk may become the heap's although there are foreign pointers into
                           it.

   Source of the idea: G. Munch-Maccagnoni, "Efficient 'out of heap' pointers for multicore OCaml" (2022). */
#ifndef OH_TABLE_H
#define OH_TABLE_H

#include "atomic.h"
#include "config.h"
#include "kind.h"
#include <stdbool.h>

#define OH_TABLE_ENTRIES ((size_t)1 << (OH_ADDRESS_BITS - OH_CHUNK_LOG))

extern int8_t oh_table[OH_TABLE_ENTRIES + 1]; /* of enum oh_kind; the last one stands for all addresses beyond */

/* Once, before the first marking. */
void oh_table_start(void);

/* The kind of any 64-bit pattern; OH_KIND_FOREIGN beyond the table. */
static inline enum oh_kind oh_table_kind(uintptr_t address)
{
  uintptr_t i = address >> OH_CHUNK_LOG;
  return i < OH_TABLE_ENTRIES ? (enum oh_kind)oh_load_relaxed(&oh_table[i]) : OH_KIND_FOREIGN;
}

/* Claims the chunk at `base` for a kind. False if it has another kind already. Any thread. */
bool oh_table_claim(uintptr_t base, enum oh_kind kind);

/* Marks the chunks of [begin, end) as places where ranges.h must be asked: OH_KIND_UNKNOWN and OH_KIND_FOREIGN become
   OH_KIND_MIXED. False if part of it is the heap's. */
bool oh_table_set_mixed(uintptr_t begin, uintptr_t end);

/* Chunks of a region that nobody may read any more. */
void oh_table_revoke(uintptr_t begin, uintptr_t end);

/* The report on naked pointers sees every foreign pointer since OH_KIND_REPORTED sends the marker to its slow path.
   `flag` is set before the entries change; while it is set, nothing becomes OH_KIND_FOREIGN or OH_KIND_MIXED. */
extern bool oh_table_report_flag;
static inline bool oh_table_reporting(void) { return oh_load_seq_cst(&oh_table_report_flag); }

/* On: OH_KIND_MIXED and OH_KIND_FOREIGN become OH_KIND_REPORTED. Off: OH_KIND_REPORTED becomes OH_KIND_MIXED. */
void oh_table_sweep(bool reporting);

#endif
