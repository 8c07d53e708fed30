/* SPDX-License-Identifier: MIT */
/* Roots whose creation cannot fail: a benchmark that runs out of memory ends. */
#ifndef BENCH_CHECKED_ROOT_H
#define BENCH_CHECKED_ROOT_H

#include <caml/mlvalues.h>
#include <boxroot.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline _Noreturn void root_failure(void)
{
  fputs("no more roots\n", stderr);
  abort();
}

static inline boxroot checked_create(value v)
{
  boxroot root = boxroot_create(v);
  if (__builtin_expect(root == NULL, 0)) root_failure();
  return root;
}

static inline void checked_modify(boxroot *root, value v)
{
  if (__builtin_expect(!boxroot_modify(root, v), 0)) root_failure();
}

#endif
