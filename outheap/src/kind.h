/* SPDX-License-Identifier: MIT */
/* Kinds of address space. Those that a program may see have the same numbers as in outheap.h. */
#ifndef OH_KIND_H
#define OH_KIND_H

#include <stdbool.h>

enum oh_kind {
  OH_KIND_REVOKED = -3,  /* memory of a region that was revoked: never read */
  OH_KIND_REGION = -2,   /* values of a region (region.h); never marked, but the marker notes that it met a pointer */
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

#endif
