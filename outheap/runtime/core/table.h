/* SPDX-License-Identifier: MIT */
/* What an address belongs to: kinds of address space, the page table, the range of addresses that holds the heap. */
#ifndef OH_TABLE_H
#define OH_TABLE_H

#include "base.h"
#include <stdbool.h>

/* --- kinds -------------------------------------------------------------------------------------------------------- */

/* Kinds of address space. Those that a program may see have the same numbers as in outheap.h. */
enum oh_kind {
  OH_KIND_REVOKED = -3,  /* memory of a region that was revoked: never read */
  OH_KIND_REGION = -2,   /* values of a region (region.h); never marked; the marker sets reach bits */
  OH_KIND_REPORTED = -1, /* as OH_KIND_MIXED, while the report on naked pointers is on */
  OH_KIND_UNKNOWN = 0,
  OH_KIND_MAJOR = 1,     /* the marker follows pointers to it */
  OH_KIND_YOUNG = 2,     /* minor heaps */
  OH_KIND_VALUES = 3,    /* values, all of it; never marked */
  OH_KIND_FOREIGN = 4,   /* not the heap's */
  OH_KIND_MIXED = 5      /* not the heap's; ranges.h knows which parts of it are values or code */
};

static inline bool oh_kind_is_heap(int kind) { return OH_KIND_MAJOR <= kind && kind <= OH_KIND_VALUES; }

static inline bool oh_kind_is_region(int kind) { return kind == OH_KIND_REGION || kind == OH_KIND_REVOKED; }

/* The kinds that all mean "not the heap's", and that may replace each other. */
static inline bool oh_kind_is_foreign(int kind)
{
  return kind == OH_KIND_FOREIGN || kind == OH_KIND_MIXED || kind == OH_KIND_REPORTED;
}

/* --- the page table ----------------------------------------------------------------------------------------------- */

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

/* Has ranges.h asked about pointers to the chunks of [begin, end): OH_KIND_UNKNOWN and OH_KIND_FOREIGN become
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

/* --- the range of the heap ---------------------------------------------------------------------------------------- */

/* The range of addresses in which the marked spaces (OH_KIND_MAJOR) and regions (OH_KIND_REGION) have their chunks: the
   place of regions, and the first parts of the zone. While all of their chunks lie there, the marking loop need not ask
   the table about each word: one comparison passes over immediates, static data and nearly all foreign pointers, and
   the table is asked about the pointers that are left. Minor heaps and the stock are in the range too, so that the
   table sees foreign pointers to where they may grow.

     whole  =>  each chunk of kind OH_KIND_MAJOR or OH_KIND_REGION lies in [base, base + size)
     not whole now  =>  not whole ever after

   A marker may look at `whole` once for as long as it does not wait for others. A chunk outside of the range is claimed
   before its first block is allocated. Blocks that are allocated while a marker runs are marked already, so that it may
   pass over them; all others were allocated before a stop of all domains, after which every marker sees the change. */
struct oh_heap_range { uintptr_t base, size; bool whole; };
extern struct oh_heap_range oh_heap_range;

/* Chooses the range, before the first claim. It must lie within the table. A size of 0: there is no such range. */
void oh_heap_range_set(uintptr_t base, uintptr_t size);

/* Takes note of a piece of address space of the marked spaces, before it is used: the range is not whole any more if
   the piece lies outside. */
void oh_heap_range_include(uintptr_t base, uintptr_t size);

static inline bool oh_heap_range_is_whole(void) { return oh_load_relaxed(&oh_heap_range.whole); }

#endif
