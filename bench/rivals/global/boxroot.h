/* SPDX-License-Identifier: MIT */
/* A malloc'ed cell registered with the runtime as a global root. */
#ifndef BENCH_GLOBAL_H
#define BENCH_GLOBAL_H

#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct bench_cell *boxroot;

static inline bool boxroot_setup(void) { return true; }

static inline boxroot boxroot_create(value v)
{
  value *cell = malloc(sizeof *cell);
  if (cell) {
    *cell = v;
    caml_register_global_root(cell);
  }
  return (boxroot)cell;
}

static inline value boxroot_get(boxroot r) { return *(value *)r; }
static inline value const *boxroot_get_ref(boxroot r) { return (value const *)r; }

static inline void boxroot_delete(boxroot r)
{
  caml_remove_global_root((value *)r);
  free(r);
}

static inline bool boxroot_modify(boxroot *r, value v)
{
  *(value *)*r = v;
  return true;
}

#endif
