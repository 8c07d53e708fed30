/* SPDX-License-Identifier: MIT */
/* The floor for a root allocator: a bare free list in thread-local storage. No test of who calls, no word for the GC,
   no root: what a cell costs when nothing but the list is touched. Unsafe with any value that the GC moves or frees,
   and on several threads. */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <caml/mlvalues.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct floor_cell *boxroot;

/* The first free cell, each of which holds the address of the next; NULL ends the list. The model is the cheapest that
   an executable and the libraries it starts with can have, so that -fPIC costs no call here. */
extern __thread void *floor_free __attribute__((tls_model("initial-exec")));
boxroot floor_refill(value v); /* NULL: no memory */

static inline bool boxroot_setup(void) { return true; }

static inline boxroot boxroot_create(value v)
{
  void **cell = floor_free;
  if (__builtin_expect(cell == NULL, 0)) return floor_refill(v);
  floor_free = *cell;
  *(value *)cell = v;
  return (boxroot)cell;
}

static inline value boxroot_get(boxroot r) { return *(value *)r; }
static inline value const *boxroot_get_ref(boxroot r) { return (value const *)r; }

static inline void boxroot_delete(boxroot r)
{
  *(void **)r = floor_free;
  floor_free = r;
}

static inline bool boxroot_modify(boxroot *r, value v)
{
  *(value *)*r = v;
  return true;
}

#endif
