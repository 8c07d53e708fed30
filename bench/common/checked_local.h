/* SPDX-License-Identifier: MIT */
/* Locals whose creation cannot fail: a benchmark that runs out of memory ends. */
#ifndef BENCH_CHECKED_LOCAL_H
#define BENCH_CHECKED_LOCAL_H

#include <boxroot/frame.h>
#include <stdio.h>
#include <stdlib.h>

static inline __attribute__((always_inline)) boxroot_local checked_local(boxroot_frame *f, value v)
{
  boxroot_local l = boxroot_local_create(f, v);
  if (__builtin_expect(l == NULL, 0)) {
    fputs("no more locals\n", stderr);
    abort();
  }
  return l;
}

#endif
