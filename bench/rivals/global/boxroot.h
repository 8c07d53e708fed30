/* SPDX-License-Identifier: MIT */
/* A malloc'ed cell, registered with the runtime as a root. Unregistered it is the floor for an allocator of cells, and
   unsafe with any value that the GC moves or frees. */
#ifndef BENCH_GLOBAL_H
#define BENCH_GLOBAL_H

#include "registered.h"
#include <stdbool.h>
#include <stdlib.h>

typedef struct bench_cell *boxroot;

static inline bool boxroot_setup(void) { return true; }

static inline boxroot boxroot_create(value v)
{
  value *cell = malloc(sizeof *cell);
  if (cell) {
    *cell = v;
    word_register(cell);
  }
  return (boxroot)cell;
}

static inline value boxroot_get(boxroot r) { return *(value *)r; }
static inline value const *boxroot_get_ref(boxroot r) { return (value const *)r; }

static inline void boxroot_delete(boxroot r)
{
  word_remove((value *)r);
  free(r);
}

static inline bool boxroot_modify(boxroot *r, value v)
{
  word_modify((value *)*r, v);
  return true;
}

#endif
