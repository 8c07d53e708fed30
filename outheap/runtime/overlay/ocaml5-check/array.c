/* SPDX-License-Identifier: MIT */
/* Arrays from C: as in alloc.c. */
#include "prelude.h"
#include "trap.h"

#undef Alloc_small
#define Alloc_small(result, wosize, tag, GC) \
  do { \
    OH_TRAP_EVENT(ALLOC); \
    Alloc_small_with_reserved(result, wosize, tag, GC, (uintnat)0); \
  } while (0)
#define caml_check_urgent_gc(v) (OH_TRAP_EVENT(ALLOC), (caml_check_urgent_gc)(v))

#include "../ocaml5/array.c"
