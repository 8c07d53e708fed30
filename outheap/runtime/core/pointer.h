/* SPDX-License-Identifier: MIT */
/* The marker's questions about a pointer, and the report on naked pointers. */
#ifndef OH_POINTER_H
#define OH_POINTER_H

#include "region.h"

/* --- questions ---------------------------------------------------------------------------------------------------- */

/* The two questions that the runtime asks about a pointer (a word with a clear low bit): does the marker follow it, and
   may its header be read? */

/* For a marker that found a pointer to a chunk of kind OH_KIND_UNKNOWN, OH_KIND_REPORTED or OH_KIND_REGION, or beyond
   the table. Sets the reach bit of a region; otherwise taints the chunk, counts and reports the pointer. Result: has
   the chunk become the heap's in the meantime? Any thread; takes no lock. */
bool oh_pointer_is_markable_slow(uintptr_t address, enum oh_region_by by);

/* Does the marker follow this pointer, which it found there? */
static inline bool oh_pointer_is_markable_by(uintptr_t address, enum oh_region_by by)
{
  uintptr_t i = address >> OH_CHUNK_LOG;
  if (__builtin_expect(i >= OH_TABLE_ENTRIES, 0)) return OH_TAINT && oh_pointer_is_markable_slow(address, by);
  int8_t k = oh_load_relaxed(&oh_table[i]);
  if (__builtin_expect(k == OH_KIND_MAJOR, 1)) return true;
  return OH_TAINT && __builtin_expect(k <= OH_KIND_UNKNOWN, 0) && oh_pointer_is_markable_slow(address, by);
}

static inline bool oh_pointer_is_markable(uintptr_t address)
{
  return oh_pointer_is_markable_by(address, OH_REGION_BY_ROOT);
}

/* For a pointer into a chunk that is partly foreign. Cost: a binary search in ranges.h. */
bool oh_pointer_is_value_slow(uintptr_t address);

/* Does this pointer lead to a block whose header may be read? */
static inline bool oh_pointer_is_value(uintptr_t address)
{
  enum oh_kind k = oh_table_kind(address);
  if (__builtin_expect(oh_kind_is_heap(k), 1)) return true;
  return (k == OH_KIND_MIXED || k == OH_KIND_REPORTED) && oh_pointer_is_value_slow(address);
}

/* How many times a marker found a pointer to a chunk of kind OH_KIND_UNKNOWN. */
size_t oh_pointer_unknown_found(void);

/* --- the report --------------------------------------------------------------------------------------------------- */

/* The report on naked pointers: counts the pointers to foreign memory that marking finds, and shows samples of them. */

/* Starts the report (`every` > 0), changes it, or ends it (`every` = 0): see outheap_report in outheap.h. Result:
   pointers counted so far. */
size_t oh_report_set(size_t every, void (*sample)(void const *pointer, void const *data), void const *data);

/* A sampler that prints. */
void oh_report_print(void const *pointer, void const *data);

/* A thread that is no domain's, in which no sampler may run, has its pointers passed to this function instead; a
   domain that gets them from it asks about them anew. NULL in all other threads. */
extern _Thread_local void (*oh_report_defer)(uintptr_t address);

/* Counts a pointer to foreign memory, and passes every nth to the sampler. Any thread; takes no lock. */
void oh_report_pointer(uintptr_t address);

size_t oh_report_count(void);

/* For start.c. In the child no other thread is in a sampler. */
void oh_report_lock(void);
void oh_report_unlock(void);
void oh_report_forked(void);

#endif
