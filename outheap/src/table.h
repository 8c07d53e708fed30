/* SPDX-License-Identifier: MIT */
/* The table: one byte for each chunk of the address space ("big bag of pages"). It lives in zero-initialised static memory, whose pages
   come into being as they are touched; there is nothing to set up.

   Invariant (monotonicity): an entry goes from OH_UNKNOWN to one kind and stays there, except that OH_FOREIGN, OH_MIXED and OH_ASK, which all mean "not the heap's",
   may replace each other.

   Who may know an entry when. A thread that holds a pointer into a chunk got it, through any number of hands, from whoever allocated there after the entry was
   written; a load whose address depends on that pointer sees the entry, on all processors. So plain loads suffice where only pointers to the heap matter. What they cannot show is a pointer that is
   foreign now, to an address where the heap will be later. Two protocols:
     taint (OH_TAINT = 1)   who finds OH_UNKNOWN turns it to OH_FOREIGN by compare-and-swap; a reservation that then finds its chunk taken keeps it out of use and
                            goes elsewhere. Once per chunk, off the fast path.
     dependency ordering    nothing is written; a chunk may become the heap's although foreign pointers into it are around.

   Source of the idea: G. Munch-Maccagnoni, "Efficient 'out of heap' pointers for multicore OCaml" (2022). */
#ifndef OH_TABLE_H
#define OH_TABLE_H

#include "config.h"
#include <stdbool.h>

enum oh_kind {
  OH_UNKNOWN = 0,
  OH_ASK = 1,     /* as OH_MIXED, while the report on naked pointers is on */
  OH_MAJOR = 2,   /* the marker follows pointers to it */
  OH_YOUNG = 3,   /* minor heaps */
  OH_VALUES = 4,  /* values, all of it; never marked */
  OH_FOREIGN = 5, /* not the heap's */
  OH_MIXED = 6    /* not the heap's; ranges.h knows which parts of it are values or code */
};

extern uint8_t oh_table[OH_ENTRIES];

/* A marker has come across a pointer to a chunk whose entry is OH_UNKNOWN or OH_ASK, or beyond the table: taints it, counts it, reports it. Is it the heap's after
   all, by now? Any thread; takes no lock. */
bool oh_met(uintptr_t address);

/* The entry of any 64-bit pattern; OH_FOREIGN beyond the table. */
static inline enum oh_kind oh_entry(uintptr_t address)
{
  uintptr_t i = address >> OH_CHUNK_LOG;
  return i < OH_ENTRIES ? (enum oh_kind)__atomic_load_n(&oh_table[i], __ATOMIC_RELAXED) : OH_FOREIGN;
}

/* Does the marker follow this pointer (low bit clear)? */
static inline bool oh_marks(uintptr_t address)
{
  uintptr_t i = address >> OH_CHUNK_LOG;
  if (__builtin_expect(i >= OH_ENTRIES, 0)) return OH_TAINT && oh_met(address);
  uint8_t k = __atomic_load_n(&oh_table[i], __ATOMIC_RELAXED);
  if (__builtin_expect(k == OH_MAJOR, 1)) return true;
  return OH_TAINT && __builtin_expect(k <= OH_ASK, 0) && oh_met(address);
}

/* Is this (low bit clear) a pointer to a block whose header may be read? Slower for static data. */
bool oh_is_listed_value(uintptr_t address);
static inline bool oh_is_value(uintptr_t address)
{
  enum oh_kind k = oh_entry(address);
  if (__builtin_expect((unsigned)k - OH_MAJOR <= OH_VALUES - OH_MAJOR, 1)) return true;
  return (k == OH_MIXED || k == OH_ASK) && oh_is_listed_value(address);
}

/* Claims the chunk at `base` for `kind` (OH_MAJOR … OH_FOREIGN). Result: false if it is something else already. Any thread. */
bool oh_claim(uintptr_t base, enum oh_kind kind);

/* Marks [begin, end) as places where ranges.h must be asked: OH_UNKNOWN and OH_FOREIGN become OH_MIXED. False if part of it is the heap's. */
bool oh_mix(uintptr_t begin, uintptr_t end);

/* The report on: OH_MIXED and OH_FOREIGN become OH_ASK, and nothing is tainted; off: the other way. */
void oh_ask(bool on);

#endif
