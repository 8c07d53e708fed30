/* SPDX-License-Identifier: MIT */
#include "table.h"
#include "atomic.h"
#include "ranges.h"
#include "report.h"

uint8_t oh_table[OH_ENTRIES];

static bool is_heap(uint8_t k) { return k == OH_MAJOR || k == OH_YOUNG || k == OH_VALUES; }

bool oh_claim(uintptr_t base, enum oh_kind kind)
{
  uintptr_t i = base >> OH_CHUNK_LOG;
  if (i >= OH_ENTRIES) return false;
  uint8_t k = OH_UNKNOWN;
  if (oh_cas_seq_cst(&oh_table[i], &k, (uint8_t)kind)) return true;
  return k == kind || (kind == OH_FOREIGN && !is_heap(k));
}

bool oh_mix(uintptr_t begin, uintptr_t end)
{
  if (begin >= end) return true;
  uintptr_t first = begin >> OH_CHUNK_LOG, last = (end - 1) >> OH_CHUNK_LOG;
  if (last >= OH_ENTRIES) return false;
  for (uintptr_t i = first; i <= last; i++)
    if (is_heap(oh_load_relaxed(&oh_table[i]))) return false;
  for (uintptr_t i = first; i <= last; i++) {
    uint8_t k = oh_load_seq_cst(&oh_table[i]);
    while (k == OH_UNKNOWN || k == OH_FOREIGN || (k == OH_MIXED && oh_asking())) {
      uint8_t to = oh_asking() ? OH_ASK : OH_MIXED;
      if (oh_cas_seq_cst(&oh_table[i], &k, to)) k = to; /* and look at the flag again: see oh_ask */
    }
    if (is_heap(k)) return false;
  }
  return true;
}

void oh_ask(bool on)
{
  for (uintptr_t i = 0; i < OH_ENTRIES; i++) {
    uint8_t k = oh_load_relaxed(&oh_table[i]);
    while (on ? k == OH_MIXED || k == OH_FOREIGN : k == OH_ASK)
      if (oh_cas_seq_cst(&oh_table[i], &k, on ? (uint8_t)OH_ASK : (uint8_t)OH_MIXED)) break;
  }
}

static size_t met_unknown;
size_t oh_met_unknown(void) { return oh_load_relaxed(&met_unknown); }

bool oh_met(uintptr_t address)
{
  uintptr_t i = address >> OH_CHUNK_LOG;
  if (i < OH_ENTRIES) {
    uint8_t k = oh_load_seq_cst(&oh_table[i]);
    if (k == OH_UNKNOWN) {
      oh_fetch_add_relaxed(&met_unknown, 1);
#if OH_TAINT
      if (oh_cas_seq_cst(&oh_table[i], &k, oh_asking() ? (uint8_t)OH_ASK : (uint8_t)OH_FOREIGN)) k = OH_FOREIGN;
      /* The report may have begun meanwhile, and its sweep have passed by. */
      uint8_t tainted = OH_FOREIGN;
      if (k == OH_FOREIGN && oh_asking()) oh_cas_seq_cst(&oh_table[i], &tainted, (uint8_t)OH_ASK);
#endif
    }
    if (is_heap(k)) return k == OH_MAJOR;
    /* It may have ended meanwhile. */
    if (k == OH_ASK && !oh_asking()) oh_cas_seq_cst(&oh_table[i], &k, (uint8_t)OH_MIXED);
  }
  if (oh_asking() && oh_ranges_at(address) == 0) oh_report_met(address);
  return false;
}

bool oh_is_listed_value(uintptr_t address)
{
  return address % sizeof(void *) == 0 && (oh_ranges_at(address) & OH_HOLDS_VALUES) != 0;
}
