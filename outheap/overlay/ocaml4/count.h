/* SPDX-License-Identifier: MIT */
/* What the marker looks at, by kind: in the flavour that counts only. Distinct cache lines are estimated with a small direct-mapped filter, which forgets; so
   the number is an upper bound of distinct lines, and a lower one of touches. */
#ifndef OH_COUNT_H
#define OH_COUNT_H
#include "table.h"
#if OH_COUNT
#include "marking.h"
static inline bool oh_count_marks(uintptr_t v)
{
  static uintptr_t recent[4096];
  oh_marking_add(&oh_marking.seen, 1);
  if (v & 1) {
    oh_marking_add(&oh_marking.immediate, 1);
    return false;
  }
  if (oh_marks(v)) return true;
  if (oh_entry(v) == OH_YOUNG) oh_marking_add(&oh_marking.young, 1);
  else {
    uintptr_t line = (v - sizeof(value)) >> 6;
    if (recent[line & 4095] != line) {
      recent[line & 4095] = line;
      oh_marking_add(&oh_marking.lines, 1);
    }
    oh_marking_add(oh_is_value(v) ? &oh_marking.statics : &oh_marking.foreign, 1);
  }
  return false;
}
#endif
#endif
