/* SPDX-License-Identifier: MIT */
#include "chain.h"
#include "fault.h"
#include "place.h"

static uintptr_t *link_of(bxr_pool *p) { return &p->slots[p->shown]; }

void bxr_chain_add(bxr_domain *d, bxr_pool *p, bxr_pool *first)
{
  uint32_t active = p->head.active;
  p->shown = active + BXR_SHOWN_AHEAD < BXR_CAPACITY ? active + BXR_SHOWN_AHEAD : BXR_CAPACITY;
  for (uint32_t i = active; i < p->shown; i++) p->slots[i] = BXR_FREE_END;
  *link_of(p) = first == NULL ? BXR_FREE_END : (uintptr_t)first->slots;
  p->block_header = bxr_runtime_block_header(p->shown + 1);
  p->earlier = NULL;
  if (first != NULL) first->earlier = p;
  else d->chain_end = p;
  p->snapshot = d->cycle;
  p->adopted = p->darkened = false;
  bxr_pool_close(p);
}

/* Not for the first pool, which is open from the start: `earlier` is not NULL. */
static void take_out(bxr_domain *d, bxr_pool *p)
{
  bxr_pool *q = p->earlier;
  uintptr_t rest = *link_of(p);
  *link_of(q) = rest;
  if (rest != BXR_FREE_END) ((bxr_pool *)bxr_pool_of(rest))->earlier = q;
  if (d->chain_end == p) d->chain_end = q;
  p->snapshot = 0;
}

static bool is_open(bxr_pool *p) { return p->earlier == NULL || bxr_runtime_block_visited(p->block_header); }

static uint32_t darken_pool(bxr_domain *d, bxr_pool *p)
{
  BXR_ASSERT(!p->adopted);
  uint32_t pushes = bxr_runtime_darken_slots(p->slots, p->head.active);
  p->darkened = true;
  if (!is_open(p)) take_out(d, p);
  bxr_count(&d->count.darkened_pools, 1);
  bxr_place_publish(d, p);
  return pushes;
}

void bxr_chain_darken(bxr_domain *d, bxr_pool *p) { (void)darken_pool(d, p); }

uint64_t bxr_chain_shorten(bxr_domain *d, uint64_t pools, uint64_t pushes)
{
  uint64_t pushed = 0;
  for (; pools > 0 && pushed < pushes; pools--) {
    bxr_pool *p = d->chain_end;
    if (p == NULL) break;
    if (is_open(p)) { /* the marker has reached the end */
      d->chain_end = NULL;
      break;
    }
    if (p->darkened) take_out(d, p);
    else pushed += darken_pool(d, p);
  }
  return pushed;
}
