/* SPDX-License-Identifier: MIT */
#define CAML_INTERNALS
#include "collapse.h"
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

/* A signal comes, whose OCaml handler has not run when this returns. */
value linear_test_signal(value unit)
{
  raise(SIGUSR1);
  return unit;
}

value linear_test_collapse(value unit) { return (void)unit, Val_long(collapse_all()); }
