/* SPDX-License-Identifier: MIT */
#include "snapshot.h"

static uintptr_t *link_of(bxr_pool *p) { return &p->slots[p->marker_limit]; }

/* Puts p, as it is now, in front of the chain that begins with `first`. */
static void add_to_chain(bxr_domain *d, bxr_pool *p, bxr_pool *first)
{
  uint32_t active = p->head.active;
  uint32_t limit = active + BXR_ALLOCATABLE_WHILE_MARKING;
  p->marker_limit = (uint16_t)(limit < BXR_CAPACITY ? limit : BXR_CAPACITY);
  for (uint32_t i = active; i < p->marker_limit; i++) p->slots[i] = BXR_FREE_END;
  *link_of(p) = first == NULL ? BXR_FREE_END : (uintptr_t)first->slots;
  p->block_header = bxr_runtime_block_header(p->marker_limit + 1);
  p->chain_prev = NULL;
  if (first != NULL) first->chain_prev = p;
  else d->chain_end = p;
  p->snapshot_cycle = d->cycle;
  p->other_marker = p->darkened = false;
  bxr_pool_close(p);
}

bxr_pool *bxr_snapshot_add(bxr_domain *d, bxr_barrier b, int list, bxr_pool *first, uint64_t *roots)
{
  BXR_ASSERT_OWNER(d);
  bxr_pool *p = d->lists[list];
  if (p != NULL) do {
    /* OCaml 5.5: the pool can be in the chain of a domain that began to mark before this one, and ended since. */
    if (!bxr_pool_unread(p, b)) {
      add_to_chain(d, p, first);
      first = p;
      d->chain_pools++;
      *roots += p->freed_is_exact ? BXR_CAPACITY - p->head.freed : BXR_CAPACITY;
    }
    p = p->next;
    __builtin_prefetch(p->next);
  } while (p != d->lists[list]);
  return first;
}

/* Takes p out of the chain. It is not the first pool, which is open from the start: chain_prev is not NULL. */
static void take_out(bxr_domain *d, bxr_pool *p)
{
  bxr_pool *q = p->chain_prev;
  uintptr_t rest = *link_of(p);
  *link_of(q) = rest;
  if (rest != BXR_FREE_END) ((bxr_pool *)bxr_pool_of(rest))->chain_prev = q;
  if (d->chain_end == p) d->chain_end = q;
  p->snapshot_cycle = 0;
}

/* Whether the marker has opened p. */
static bool is_open(bxr_pool *p) { return p->chain_prev == NULL || bxr_runtime_block_visited(p->block_header); }

/* The result is the number of entries put on the mark stack. */
static uint32_t darken_pool(bxr_domain *d, bxr_pool *p)
{
  BXR_ASSERT_OWNER(d);
  BXR_ASSERT(!p->other_marker);
  uint32_t pushes = bxr_runtime_darken_slots(p->slots, p->head.active);
  p->darkened = true;
  if (!is_open(p)) take_out(d, p);
  bxr_count(&d->count.darkened_pools, 1);
  return pushes;
}

void bxr_snapshot_darken(bxr_domain *d, bxr_pool *p) { (void)darken_pool(d, p); }

void bxr_snapshot_advance(bxr_domain *d, uint64_t *pools, uint64_t *pushed, uint64_t pushes)
{
  if (d->chain_end == NULL) return;
  bxr_barrier b = bxr_domain_barrier(d);
  if (b.cycle[0] == BXR_NO_CYCLE) return;
  for (; *pools > 0 && *pushed < pushes; --*pools) {
    bxr_pool *p = d->chain_end;
    if (p == NULL) break;
    if (is_open(p)) { /* the marker has reached the end */
      d->chain_end = NULL;
      break;
    }
    if (p->darkened) {
      take_out(d, p);
      continue;
    }
    uint32_t n = darken_pool(d, p);
    bxr_owners_publish(d, p, b);
    d->pushed += n;
    *pushed += n;
  }
}
