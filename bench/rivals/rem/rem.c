/* SPDX-License-Identifier: MIT */
#define CAML_INTERNALS
#include "boxroot.h"
#include "scanning.h"
#include <caml/domain_state.h>
#include <stdlib.h>

_Static_assert(sizeof(rem_pool) == REM_POOL_BYTES, "a pool is as large as its alignment");

static rem_pool nowhere = {.free = (rem_slot *)&nowhere, .young_free = (rem_slot *)&nowhere}; /* full forever */
rem_pool *rem_current = &nowhere;
static rem_pool *pools, *roomy, *young;

void rem_add_to_young(rem_pool *pool)
{
  pool->young = true;
  pool->next_young = young;
  young = pool;
}

void rem_add_to_roomy(rem_pool *pool)
{
  if (pool->roomy) return;
  pool->roomy = true;
  pool->next_roomy = roomy;
  roomy = pool;
}

static rem_pool *new_pool(void)
{
  rem_pool *pool = aligned_alloc(REM_POOL_BYTES, REM_POOL_BYTES);
  if (!pool) return NULL;
  *pool = (rem_pool){.free = pool->slots, .young_free = rem_end(pool), .next = pools};
  for (int i = 0; i < REM_CAPACITY - 1; i++) pool->slots[i].next = &pool->slots[i + 1];
  pool->slots[REM_CAPACITY - 1].next = rem_end(pool);
  return pools = pool;
}

static rem_pool *next_pool(void)
{
  rem_pool *pool = roomy;
  if (pool) roomy = pool->next_roomy;
  else if (!(pool = new_pool())) return NULL;
  rem_current->roomy = false;
  pool->roomy = true;
  return rem_current = pool;
}

boxroot rem_create_slow(value v)
{
  rem_pool *pool = rem_current;
  for (; pool; pool = next_pool()) {
    if (pool->free != rem_end(pool)) {
      boxroot r = rem_take(pool, &pool->free, v);
      if (rem_is_young(v)) rem_remember(r);
      return r;
    }
    if (pool->young_free != rem_end(pool)) return rem_take(pool, &pool->young_free, v);
  }
  return NULL;
}

/* What a minor collection has emptied the remembered set of: the young free slots are as the others. */
static void join_lists(void)
{
  for (; young; young = young->next_young) {
    rem_slot **last = &young->young_free;
    while (*last != rem_end(young)) last = &(*last)->next;
    *last = young->free;
    young->free = young->young_free;
    young->young_free = rem_end(young);
    young->young = false;
  }
}

static bool in_use(rem_pool *pool, value v) { return Is_block(v) && rem_pool_of((rem_slot *)v) != pool; }

#if OCAML_VERSION >= 50000
void rem_remember(rem_slot *slot) { Ref_table_add(&Caml_state->minor_tables->major_ref, &slot->held); }
#else
void rem_remember(rem_slot *slot) { add_to_ref_table(Caml_state_field(ref_table), &slot->held); }
#endif

static void scan_roots(visitor v, bool only_young)
{
  if (only_young) {
    join_lists();
    return;
  }
  for (rem_pool *pool = pools; pool; pool = pool->next)
    for (rem_slot *slot = pool->slots; slot < pool->slots + REM_CAPACITY; slot++)
      if (in_use(pool, slot->held)) visit(v, &slot->held);
}
