/* SPDX-License-Identifier: MIT */
#include "table.h"

int8_t oh_table[OH_TABLE_ENTRIES + 1];
bool oh_table_report_flag;

void oh_table_start(void) { oh_store_relaxed(&oh_table[OH_TABLE_ENTRIES], OH_KIND_FOREIGN); }

bool oh_table_claim(uintptr_t base, enum oh_kind kind)
{
  uintptr_t i = base >> OH_CHUNK_LOG;
  if (i >= OH_TABLE_ENTRIES) return false;
  int8_t k = OH_KIND_UNKNOWN;
  if (oh_cas_seq_cst(&oh_table[i], &k, (int8_t)kind)) return true;
  return k == kind || (kind == OH_KIND_FOREIGN && oh_kind_is_foreign(k));
}

static bool is_taken(int kind) { return oh_kind_is_heap(kind) || oh_kind_is_region(kind); }

bool oh_table_set_mixed(uintptr_t begin, uintptr_t end)
{
  if (begin >= end) return true;
  uintptr_t first = begin >> OH_CHUNK_LOG, last = (end - 1) >> OH_CHUNK_LOG;
  if (last >= OH_TABLE_ENTRIES) return false;
  for (uintptr_t i = first; i <= last; i++)
    if (is_taken(oh_load_relaxed(&oh_table[i]))) return false;
  for (uintptr_t i = first; i <= last; i++) {
    int8_t k = oh_load_seq_cst(&oh_table[i]);
    while (k == OH_KIND_UNKNOWN || k == OH_KIND_FOREIGN || (k == OH_KIND_MIXED && oh_table_reporting())) {
      int8_t to = oh_table_reporting() ? OH_KIND_REPORTED : OH_KIND_MIXED;
      /* and look at the flag again: its setter may have swept this entry before */
      if (oh_cas_seq_cst(&oh_table[i], &k, to)) k = to;
    }
    if (is_taken(k)) return false;
  }
  return true;
}

void oh_table_revoke(uintptr_t begin, uintptr_t end)
{
  for (uintptr_t c = begin; c < end; c += OH_CHUNK)
    if (oh_table_kind(c) == OH_KIND_REGION) oh_store_release(&oh_table[c >> OH_CHUNK_LOG], (int8_t)OH_KIND_REVOKED);
}

void oh_table_sweep(bool reporting)
{
  for (uintptr_t i = 0; i < OH_TABLE_ENTRIES; i++) {
    int8_t k = oh_load_relaxed(&oh_table[i]);
    while (reporting ? k == OH_KIND_MIXED || k == OH_KIND_FOREIGN : k == OH_KIND_REPORTED)
      if (oh_cas_seq_cst(&oh_table[i], &k, reporting ? (int8_t)OH_KIND_REPORTED : (int8_t)OH_KIND_MIXED)) break;
  }
}

/* --- the range of the heap ---------------------------------------------------------------------------------------- */

struct oh_heap_range oh_heap_range;

void oh_heap_range_set(uintptr_t base, uintptr_t size)
{
  oh_heap_range = (struct oh_heap_range){ base, size, size != 0 };
}

void oh_heap_range_include(uintptr_t base, uintptr_t size)
{
  uintptr_t at = base - oh_heap_range.base; /* wraps around below the range, and is too large then */
  if (at > oh_heap_range.size || size > oh_heap_range.size - at) oh_store_seq_cst(&oh_heap_range.whole, false);
}
