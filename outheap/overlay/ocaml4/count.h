/* SPDX-License-Identifier: MIT */
/* What the marker reads, by kind; only in the flavour that counts. Distinct cache lines are estimated with a small
   direct-mapped filter, which forgets: the number is an upper bound of distinct lines, and a lower bound of
   accesses. */
#ifndef OH_COUNT_H
#define OH_COUNT_H
#include "pointer.h"
#if OH_COUNT
#include "marking.h"
static inline bool oh_count_is_markable(uintptr_t v)
{
  static uintptr_t recent[4096];
  oh_marking_count(&oh_marking.words_seen);
  if (v & 1) {
    oh_marking_count(&oh_marking.words_immediate);
    return false;
  }
  if (oh_pointer_is_markable(v)) return true;
  if (oh_table_kind(v) == OH_KIND_YOUNG) oh_marking_count(&oh_marking.words_young);
  else {
    uintptr_t line = (v - sizeof(value)) >> 6;
    if (recent[line & 4095] != line) {
      recent[line & 4095] = line;
      oh_marking_count(&oh_marking.lines_saved);
    }
    oh_marking_count(oh_pointer_is_value(v) ? &oh_marking.words_static : &oh_marking.words_foreign);
  }
  return false;
}
#endif
#endif
