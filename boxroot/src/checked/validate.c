/* SPDX-License-Identifier: MIT */
#include "validate.h"

#if BOXROOT_DEBUG
#include "account.h"
#include "../records.h"

static bool is_unused_slot(bxr_slot_state s) { return s == BXR_SLOT_FREE || s == BXR_SLOT_TORN_DOWN; }

/* What the account says of a slot must agree with where the slot is. */
static void validate_slot(uintptr_t const *slot, bool unused)
{
  bxr_slot_state s = bxr_account_state(slot);
  BXR_ASSERT(is_unused_slot(s) == unused);
  if (s == BXR_SLOT_QUARANTINED || s == BXR_SLOT_RELEASED) BXR_ASSERT(*slot == BXR_DELETED_WORD);
}

static void validate_pool(bxr_domain *d, bxr_pool *p, int list)
{
  uint64_t is_free[BXR_PENDING_WORDS] = { 0 };
  uint32_t free = 0;
  bxr_barrier b = bxr_domain_barrier(d);
  bool young = bxr_list_is_young(list);
  if (list == BXR_LIST_IDLE)
    BXR_ASSERT(bxr_pool_is_empty(p) && p->head.free_owner == BXR_NOBODY && p->pending_groups == 0);
  bool cleared = bxr_domain_has_cleared(d, p);
  if (list == BXR_LIST_CLEARED) BXR_ASSERT(cleared);
  if (cleared)
    BXR_ASSERT((list == BXR_LIST_CLEARED || list == BXR_LIST_YOUNG_FULL) && p->head.free_owner == BXR_NOBODY &&
               p->head.alloc_owner == BXR_NOBODY && !p->freed_is_exact);
  bool full = !cleared && (list == BXR_LIST_YOUNG_FULL || list == BXR_LIST_OLD_FULL);
  BXR_ASSERT(p->list == list && bxr_domain_owns(d, p));
  BXR_ASSERT((bxr_load_relaxed(&bxr_segment_of(p)->unused) >> bxr_segment_index(p) & 1) == 0);
  BXR_ASSERT(p->head.active <= BXR_CAPACITY && p->head.active % (p->wider + 1u) == 0);
  BXR_ASSERT(cleared || p->wider == d->wider);
  for (uintptr_t f = p->head.free; f != BXR_FREE_END; f = *(uintptr_t *)(f - 1)) {
    size_t i = (uintptr_t *)(f - 1) - p->slots;
    BXR_ASSERT((f & 7) == 1 && i < p->head.active && (is_free[i / 64] >> (i % 64) & 1) == 0);
    BXR_ASSERT(free % (p->wider + 1u) == i % (p->wider + 1u)); /* the slots of a root follow each other */
    is_free[i / 64] |= (uint64_t)1 << (i % 64);
    free++;
  }
  if (bxr_pool_unread(p, b) && !p->other_marker) {
    BXR_ASSERT(p->head.active <= p->marker_limit && p->marker_limit <= BXR_CAPACITY);
    for (uint32_t i = p->head.active; i < p->marker_limit; i++) BXR_ASSERT((p->slots[i] & 1) == 1);
  }
  if (list == BXR_LIST_OLD_ROOMY) BXR_ASSERT(p->freed_is_exact && p->head.freed >= BXR_ROOMY_LEAST_FREE);
  if (p->freed_is_exact) BXR_ASSERT(p->head.freed == free + BXR_CAPACITY - p->head.active);
  BXR_ASSERT(free % (p->wider + 1u) == 0);
  if (full) BXR_ASSERT(free == 0 && p->head.active == BXR_CAPACITY);
  if (p->head.free_owner == d->head.state) BXR_ASSERT(!full && !bxr_pool_guarded(p, b));
  if (d->strays != BXR_RUNTIME_NO_STRAYS)
    BXR_ASSERT(p->head.free_owner != d->head.state && p->head.store_owner != d->head.state);
  if (p->head.alloc_owner == d->head.state) BXR_ASSERT(p == d->current && p->storage == 0);
  if (p->head.store_owner == d->head.state) BXR_ASSERT(young && !bxr_pool_guarded(p, b));
  bxr_minor_range range = bxr_runtime_minor_range();
  for (uint32_t i = 0; i < BXR_CAPACITY; i++) {
    bool on_list = (is_free[i / 64] >> (i % 64) & 1) != 0;
    if (!cleared) validate_slot(&p->slots[i], on_list || i >= p->head.active || i % (p->wider + 1u) != 0);
    if (i >= p->head.active) continue;
    if (on_list) BXR_ASSERT((p->slots[i] & 1) == 1);
    else if (!young && !cleared) BXR_ASSERT(!bxr_runtime_in_minor_range(range, p->slots[i]));
  }
}

/* Goes from the end of the chain back to its beginning; the pools that the marker has opened come last. */
static void validate_chain(bxr_domain *d)
{
  if (!d->marking || bxr_runtime_marking_done() || d->runtime_cycle != bxr_runtime_cycle()) return;
  uint64_t n = 0;
  bool opened = false;
  for (bxr_pool *p = d->chain_end; p != NULL; p = p->chain_prev) {
    BXR_ASSERT(bxr_domain_owns(d, p) && p->snapshot_cycle == d->cycle && !p->other_marker && ++n <= d->chain_pools);
    BXR_ASSERT(p->chain_prev == NULL || p->chain_prev->slots[p->chain_prev->marker_limit] == (uintptr_t)p->slots);
    bool visited = bxr_runtime_block_visited(p->block_header);
    BXR_ASSERT(visited || !opened);
    opened = visited;
  }
}

void bxr_validate(bxr_domain *d)
{
  uint64_t in_use = 0, idle = 0;
  for (int list = 0; list < BXR_LISTS; list++) {
    bxr_pool *p = d->lists[list];
    if (p != NULL) do {
      BXR_ASSERT(p->next->prev == p && p->prev->next == p);
      validate_pool(d, p, list);
      if (list == BXR_LIST_IDLE) idle++;
      else in_use++;
      p = p->next;
    } while (p != d->lists[list]);
  }
  BXR_ASSERT(in_use == d->count.pools_in_use && idle == d->idle && d->idle_least <= d->idle && d->surplus <= d->idle);
  BXR_ASSERT(d->current == NULL || d->current->list == BXR_LIST_YOUNG_AVAIL);
  bxr_pool_head *source = bxr_load_relaxed(&d->head.source);
  /* or else its storage was renamed (rename_to), or creations are being sampled */
  BXR_ASSERT((d->current != NULL && source == &d->current->head) || source == &bxr_no_pool);
  BXR_ASSERT(d->spare == NULL || d->spare->list == BXR_LIST_OLD_AVAIL || d->spare->list == BXR_LIST_OLD_ROOMY);
  validate_chain(d);
}
#endif
