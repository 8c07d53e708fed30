/* SPDX-License-Identifier: MIT */
/* Floats from C: as in alloc.c. */
#define _GNU_SOURCE /* as the unit does, which would be too late */
#include "prelude.h"
#include "trap.h"

#undef Alloc_small
#define Alloc_small(result, wosize, tag, GC) \
  do { \
    OH_TRAP_EVENT(ALLOC); \
    Alloc_small_with_reserved(result, wosize, tag, GC, (uintnat)0); \
  } while (0)

#include <floats.c>
