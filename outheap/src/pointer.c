/* SPDX-License-Identifier: MIT */
#include "pointer.h"
#include "ranges.h"
#include "report.h"

static size_t met_unknown;
size_t oh_pointer_met_unknown(void) { return oh_load_relaxed(&met_unknown); }

bool oh_pointer_is_markable_slow(uintptr_t address, enum oh_region_by by)
{
  uintptr_t i = address >> OH_CHUNK_LOG;
  if (i < OH_TABLE_ENTRIES) {
    int8_t k = oh_load_seq_cst(&oh_table[i]);
    if (oh_kind_is_region(k)) {
      if ((address & 1) == 0) oh_region_meet(address, by);
      return false;
    }
    if (k == OH_KIND_UNKNOWN) {
      oh_fetch_add_relaxed(&met_unknown, 1);
#if OH_TAINT
      if (oh_cas_seq_cst(&oh_table[i], &k, oh_table_reporting() ? (int8_t)OH_KIND_REPORTED : (int8_t)OH_KIND_FOREIGN))
        k = OH_KIND_FOREIGN;
      /* The report may have begun in the meantime, and its sweep may have passed this entry. */
      int8_t tainted = OH_KIND_FOREIGN;
      if (k == OH_KIND_FOREIGN && oh_table_reporting())
        oh_cas_seq_cst(&oh_table[i], &tainted, (int8_t)OH_KIND_REPORTED);
#endif
    }
    if (oh_kind_is_heap(k)) return k == OH_KIND_MAJOR;
    /* The report may have ended in the meantime. */
    if (k == OH_KIND_REPORTED && !oh_table_reporting()) oh_cas_seq_cst(&oh_table[i], &k, (int8_t)OH_KIND_MIXED);
  }
  if (oh_table_reporting() && oh_ranges_at(address) == 0) oh_report_pointer(address);
  return false;
}

bool oh_pointer_is_value_slow(uintptr_t address)
{
  return address % sizeof(void *) == 0 && (oh_ranges_at(address) & OH_RANGES_VALUES) != 0;
}
