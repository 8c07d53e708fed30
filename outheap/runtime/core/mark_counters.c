/* SPDX-License-Identifier: MIT */
#include "mark_counters.h"
#include "pointer.h"
#include "table.h"

struct oh_mark_counters oh_mark_counters;

#if OH_COUNT
static void count(size_t *counter) { (void)oh_fetch_add_relaxed(counter, 1); }

void oh_mark_counters_count_word(uintptr_t v)
{
  count(&oh_mark_counters.words_seen);
  if (v & 1) count(&oh_mark_counters.words_immediate);
}

void oh_mark_counters_count_other(uintptr_t v)
{
  static _Thread_local uintptr_t recent[4096];
  if (oh_table_kind(v) == OH_KIND_YOUNG) {
    count(&oh_mark_counters.words_young);
    return;
  }
  uintptr_t line = (v - sizeof(uintptr_t)) >> 6;
  if (recent[line & 4095] != line) {
    recent[line & 4095] = line;
    count(&oh_mark_counters.lines_saved);
  }
  count(oh_pointer_is_value(v) ? &oh_mark_counters.words_static : &oh_mark_counters.words_foreign);
}
#endif
