/* SPDX-License-Identifier: MIT */
#include "pool.h"

void bxr_pool_close(bxr_pool *p)
{
  bxr_store_relaxed(&p->head.free_owner, BXR_NOBODY);
  bxr_store_relaxed(&p->head.alloc_owner, BXR_NOBODY);
  bxr_store_relaxed(&p->head.store_owner, BXR_NOBODY);
}

void bxr_pool_format(bxr_pool *p)
{
  bxr_pool_close(p);
  p->head.free = BXR_FREE_END;
  p->head.freed = BXR_CAPACITY;
  p->head.active = 0;
  bxr_store_relaxed(&p->home, (struct bxr_domain *)NULL);
  p->next = p->prev = p;
  p->chain_prev = NULL;
  p->snapshot_cycle = p->marker_limit = 0;
  p->list = BXR_LIST_NONE;
  p->freed_is_exact = true;
  p->other_marker = p->darkened = false;
  bxr_store_relaxed(&p->storage, (uint64_t)0);
  p->wider = 0;
  p->pending_next = NULL;
  bxr_store_relaxed(&p->pending_groups, (uint64_t)0);
  p->block_header = 0;
}

void bxr_pool_reset(bxr_pool *p)
{
  p->head.free = BXR_FREE_END;
  p->head.freed = BXR_CAPACITY;
  p->head.active = 0;
  p->freed_is_exact = true;
}

/* False when there are too few slots below `limit`. */
static bool activate(bxr_pool *p, uint32_t limit)
{
  BXR_ASSERT(p->head.free == BXR_FREE_END);
  uint32_t from = p->head.active, to = from + BXR_MOST_ACTIVATED_AT_ONCE;
  if (from >= limit) return false;
  if (to > limit) to = limit;
  to -= (to - from) % (p->wider + 1u);
  if (to == from) return false;
  for (uint32_t i = from; i + 1 < to; i++) p->slots[i] = (uintptr_t)&p->slots[i + 1] + 1;
  p->slots[to - 1] = BXR_FREE_END;
  p->head.free = (uintptr_t)&p->slots[from] + 1;
  p->head.active = to;
  return true;
}

bool bxr_pool_has_room(bxr_pool *p, bxr_barrier b)
{
  return p->head.free != BXR_FREE_END || activate(p, bxr_pool_unread(p, b) ? p->marker_limit : BXR_CAPACITY);
}

uintptr_t *bxr_pool_take(bxr_pool *p)
{
  BXR_ASSERT(p->head.free != BXR_FREE_END);
  uintptr_t *slot = (uintptr_t *)(p->head.free - 1);
  p->head.free = slot[p->wider];
  return slot;
}

void bxr_pool_put(bxr_pool *p, uintptr_t *slot)
{
  uintptr_t free = p->head.free;
  for (unsigned i = p->wider + 1u; i-- > 0; free = (uintptr_t)&slot[i] + 1) slot[i] = free;
  p->head.free = free;
  p->head.freed += p->wider + 1u;
}

void bxr_pool_put_bits(bxr_pool *p, uintptr_t *first, uint64_t bits)
{
  if (p->wider != 0) {
    for (; bits != 0; bits &= bits - 1) bxr_pool_put(p, first + __builtin_ctzll(bits));
    return;
  }
  uintptr_t free = p->head.free;
  p->head.freed += (uint32_t)__builtin_popcountll(bits);
  for (; bits != 0; bits &= bits - 1) {
    uintptr_t *slot = first + __builtin_ctzll(bits);
    *slot = free;
    free = (uintptr_t)slot + 1;
  }
  p->head.free = free;
}

void bxr_pool_count(bxr_pool *p)
{
  if (p->freed_is_exact) return;
  uint32_t n = BXR_CAPACITY - p->head.active;
  for (uintptr_t f = p->head.free; f != BXR_FREE_END; f = *(uintptr_t *)(f - 1)) n++;
  p->head.freed = n;
  p->freed_is_exact = true;
}
