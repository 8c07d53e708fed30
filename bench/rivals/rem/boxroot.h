/* SPDX-License-Identifier: MIT */
/* Roots in the collector's remembered set: a minor collection visits those that hold young values, and nothing else of
   the pools. Each pool has two free lists: slots that the remembered set knows already, for young values, so that a
   short-lived root enters it once; and all others. For one thread on one domain. */
#ifndef BENCH_REM_H
#define BENCH_REM_H

#include <caml/mlvalues.h>
#include <caml/version.h>
#include <stdbool.h>
#include <stdint.h>

#if OCAML_VERSION >= 50000
extern uintnat caml_minor_heaps_start, caml_minor_heaps_end;
#define REM_YOUNG_START caml_minor_heaps_start
#define REM_YOUNG_END caml_minor_heaps_end
#else
#include <caml/domain_state.h>
#define REM_YOUNG_START ((uintnat)Caml_state_field(young_start))
#define REM_YOUNG_END ((uintnat)Caml_state_field(young_end))
#endif

enum { REM_POOL_BYTES = 1 << 14, REM_HEADER_WORDS = 7, REM_CAPACITY = REM_POOL_BYTES / 8 - REM_HEADER_WORDS };

/* A free slot holds the address of the next one, or of its pool at the end of the list: never an address of OCaml's
   heap. */
typedef union rem_slot {
  value held;
  union rem_slot *next;
} rem_slot;

typedef rem_slot *boxroot;

typedef struct rem_pool {
  rem_slot *free, *young_free; /* young_free: in the remembered set until the next minor collection */
  long live;
  struct rem_pool *next;       /* in the list of all pools */
  struct rem_pool *next_roomy; /* in the list of pools to allocate from */
  struct rem_pool *next_young; /* in the list of pools whose young_free may hold a slot */
  bool roomy, young;           /* in these lists, or current */
  rem_slot slots[REM_CAPACITY];
} rem_pool;

extern rem_pool *rem_current;
bool boxroot_setup(void);
boxroot rem_create_slow(value v); /* NULL: no memory */
void rem_remember(rem_slot *slot);
void rem_add_to_young(rem_pool *pool);
void rem_add_to_roomy(rem_pool *pool);

static inline bool rem_is_young(value v)
{
  return Is_block(v) && (uintnat)v - REM_YOUNG_START < REM_YOUNG_END - REM_YOUNG_START;
}

static inline rem_pool *rem_pool_of(rem_slot *slot)
{
  return (rem_pool *)((uintptr_t)slot & -(uintptr_t)REM_POOL_BYTES);
}
static inline rem_slot *rem_end(rem_pool *pool) { return (rem_slot *)pool; }

/* Takes the first slot of a list that has one. */
static inline boxroot rem_take(rem_pool *pool, rem_slot **list, value v)
{
  rem_slot *slot = *list;
  *list = slot->next;
  pool->live++;
  slot->held = v;
  return slot;
}

static inline boxroot boxroot_create(value v)
{
  rem_pool *pool = rem_current;
  if (rem_is_young(v)) {
    if (pool->young_free != rem_end(pool)) return rem_take(pool, &pool->young_free, v);
  } else if (pool->free != rem_end(pool)) {
    return rem_take(pool, &pool->free, v);
  }
  return rem_create_slow(v);
}

static inline value boxroot_get(boxroot r) { return r->held; }
static inline value const *boxroot_get_ref(boxroot r) { return &r->held; }

static inline void boxroot_delete(boxroot r)
{
  rem_pool *pool = rem_pool_of(r);
  if (rem_is_young(r->held)) {
    if (__builtin_expect(!pool->young, 0)) rem_add_to_young(pool);
    r->next = pool->young_free;
    pool->young_free = r;
  } else {
    r->next = pool->free;
    pool->free = r;
  }
  if (__builtin_expect(--pool->live == REM_CAPACITY / 2, 0)) rem_add_to_roomy(pool);
}

static inline bool boxroot_modify(boxroot *r, value v)
{
  bool known = rem_is_young((*r)->held);
  (*r)->held = v;
  if (!known && rem_is_young(v)) rem_remember(*r);
  return true;
}

#endif
