/* SPDX-License-Identifier: MIT */
#include "pool.h"

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

bool bxr_pool_activate(bxr_pool *p, uint32_t limit)
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

void bxr_pool_count(bxr_pool *p)
{
  if (p->freed_is_exact) return;
  uint32_t n = BXR_CAPACITY - p->head.active;
  for (uintptr_t f = p->head.free; f != BXR_FREE_END; f = *(uintptr_t *)(f - 1)) n++;
  p->head.freed = n;
  p->freed_is_exact = true;
}

void bxr_pool_list_push_back(bxr_pool **list, bxr_pool *p)
{
  bxr_pool *first = *list;
  if (first == NULL) {
    p->next = p->prev = p;
    *list = p;
  } else {
    p->next = first;
    p->prev = first->prev;
    first->prev->next = p;
    first->prev = p;
  }
}

void bxr_pool_list_push_front(bxr_pool **list, bxr_pool *p)
{
  bxr_pool_list_push_back(list, p);
  *list = p;
}

void bxr_pool_list_remove(bxr_pool **list, bxr_pool *p)
{
  BXR_ASSERT(*list != NULL);
  if (p->next == p) {
    BXR_ASSERT(*list == p);
    *list = NULL;
  } else {
    p->next->prev = p->prev;
    p->prev->next = p->next;
    if (*list == p) *list = p->next;
  }
  p->next = p->prev = p;
}
