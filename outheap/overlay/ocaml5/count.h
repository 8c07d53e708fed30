/* SPDX-License-Identifier: MIT */
/* What the marker looks at, by kind: in the flavour that counts only. Distinct cache lines are estimated with a small direct-mapped filter for each thread,
   which forgets; so the number is an upper bound of distinct lines, and a lower one of touches. */
#ifndef OH_COUNT_H
#define OH_COUNT_H
#include "table.h"
#if OH_COUNT
#include "marking.h"
static inline int oh_count_block(value v)
{
  oh_marking_add(&oh_marking.seen, 1);
  if (v & 1) oh_marking_add(&oh_marking.immediate, 1);
  return (v & 1) == 0;
}
static inline int oh_count_marks(value v)
{
  static _Thread_local uintptr_t recent[4096];
  if ((v & 1) || oh_marks((uintptr_t)v)) return 1;
  enum oh_kind k = oh_entry((uintptr_t)v);
  if (k == OH_YOUNG) oh_marking_add(&oh_marking.young, 1);
  else {
    uintptr_t line = ((uintptr_t)v - sizeof(value)) >> 6;
    if (recent[line & 4095] != line) {
      recent[line & 4095] = line;
      oh_marking_add(&oh_marking.lines, 1);
    }
    oh_marking_add(oh_is_value((uintptr_t)v) ? &oh_marking.statics : &oh_marking.foreign, 1);
  }
  return 0;
}
#endif
#endif
