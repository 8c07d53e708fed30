/* SPDX-License-Identifier: MIT */
/* The floor for an allocator of cells: malloc and free, and no root. Unsafe with any value that the GC moves or
   frees. */
#ifndef BENCH_MALLOC_H
#define BENCH_MALLOC_H

#include <caml/mlvalues.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct bench_cell *boxroot;

static inline bool boxroot_setup(void) { return true; }

static inline boxroot boxroot_create(value v)
{
  value *cell = malloc(sizeof *cell);
  if (cell) *cell = v;
  return (boxroot)cell;
}

static inline value boxroot_get(boxroot r) { return *(value *)r; }
static inline value const *boxroot_get_ref(boxroot r) { return (value const *)r; }
static inline void boxroot_delete(boxroot r) { free(r); }

static inline bool boxroot_modify(boxroot *r, value v)
{
  *(value *)*r = v;
  return true;
}

#endif
