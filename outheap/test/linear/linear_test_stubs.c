/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define CAML_INTERNALS
#include "collapse.h"
#include "region_runtime.h"
#include <caml/alloc.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

static long countdown; /* 0: no call fails; n > 0: the nth does; below 0: all do */

int linear_faults_now(void) { return countdown < 0 || (countdown > 0 && --countdown == 0); }

/* Sets that; returns what was left. */
value linear_test_fail(value n)
{
  long before = countdown;
  countdown = Long_val(n);
  return Val_long(before);
}

/* Blocks that are none of OCaml's: in C's static data, with a header, and on the C heap, without. */
value linear_test_foreign(value unit)
{
  static uintptr_t block[] = { 0, 0, 0, 0 };
  (void)unit;
  return (value)(block + 2);
}

/* A pointer that is `bytes` away from the block `v`, as an abstract value. */
value linear_test_beside(value v, value bytes) { return v + Long_val(bytes); }

value linear_test_custom(value n) { return caml_copy_int64(Long_val(n)); }

/* Pages of cells at the addresses that Linux gives on arm64, and beyond. No memory is there. */
value linear_test_high(value unit)
{
  char *high = (char *)OUTHEAP_REGION_ADDRESSES - 2 * OUTHEAP_REGION_CELLS;
  bool good = outheap_region_marker_note_cells(high) && outheap_region_marker_has_cells((uintptr_t)high + 8)
              && !outheap_region_marker_has_cells((uintptr_t)high + OUTHEAP_REGION_CELLS)
              && !outheap_region_marker_note_cells((char *)OUTHEAP_REGION_ADDRESSES);
  return (void)unit, Val_bool(good);
}

/* A signal comes, whose OCaml handler has not run when this returns. */
value linear_test_signal(value unit)
{
  raise(SIGUSR1);
  return unit;
}

value linear_test_collapse(value unit) { return (void)unit, Val_long(collapse_all()); }
