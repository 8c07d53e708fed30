/* SPDX-License-Identifier: MIT */
/* Allocation from C.

   Stock   collects where the minor heap is full.
   Here    each allocation may collect (trap.h), and the fields of a new block lead to where nothing is. */
#include "prelude.h"
#include "trap.h"
#include <caml/alloc.h>
#include <caml/custom.h>

#undef Alloc_small
#define Alloc_small(result, wosize, tag, GC) \
  do { \
    OH_TRAP_EVENT(ALLOC); \
    Alloc_small_with_reserved(result, wosize, tag, GC, (uintnat)0); \
    if (oh_trap_on && (tag) < No_scan_tag) oh_trap_fill((value *)(result), 0, wosize, false); \
  } while (0)
#define caml_check_urgent_gc(v) (OH_TRAP_EVENT(ALLOC), (caml_check_urgent_gc)(v))

#include "../ocaml5/alloc.c"
