/* SPDX-License-Identifier: MIT */
/* Wrong on purpose: a deleted root keeps its value alive. */
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct bench_cell *boxroot;

static inline bool boxroot_setup(void) { return true; }
static inline value boxroot_get(boxroot r) { return *(value *)r; }
static inline value const *boxroot_get_ref(boxroot r) { return (value const *)r; }
static inline void boxroot_delete(boxroot r) { (void)r; }

static inline boxroot boxroot_create(value v)
{
  value *cell = malloc(sizeof *cell);
  if (cell) {
    *cell = v;
    caml_register_generational_global_root(cell);
  }
  return (boxroot)cell;
}

static inline bool boxroot_modify(boxroot *r, value v)
{
  caml_modify_generational_global_root((value *)*r, v);
  return true;
}
