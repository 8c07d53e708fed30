/* SPDX-License-Identifier: MIT */
#include "validate.h"

#if BOXROOT_DEBUG
#include "remote.h"
#include <stdlib.h>
#include <string.h>

/* One bit per slot of a pool, set while the slot is a live root. Kept in a table beside the region: the checked build can afford it. */
typedef struct live_map {
  uint64_t live[64][BXR_PENDING_WORDS];
} live_map;
#define LIVE_MAPS 4096
static struct { bxr_region *region; live_map *map; } maps[LIVE_MAPS];

static live_map *map_of(bxr_region *r)
{
  for (uintptr_t i = (uintptr_t)r / BXR_REGION_SIZE;; i++) {
    bxr_region *found = bxr_load_acquire(&maps[i % LIVE_MAPS].region);
    if (found == NULL) {
      if (!__atomic_compare_exchange_n(&maps[i % LIVE_MAPS].region, &found, r, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) && found != r)
        continue;
      found = r;
    }
    if (found != r) continue;
    live_map *m = bxr_load_acquire(&maps[i % LIVE_MAPS].map);
    if (m == NULL) {
      live_map *fresh = calloc(1, sizeof(live_map));
      if (fresh == NULL) return NULL;
      if (__atomic_compare_exchange_n(&maps[i % LIVE_MAPS].map, &m, fresh, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) m = fresh;
    }
    return m;
  }
}

static size_t word_index(boxroot r) { return ((uintptr_t)r & (BXR_POOL_SIZE - 1)) / sizeof(uintptr_t); }
static uint64_t live_bit(boxroot r) { return (uint64_t)1 << (word_index(r) % 64); }
static uint64_t *live_word(boxroot r)
{
  return &map_of(bxr_region_of(r))->live[bxr_pool_index(r)][word_index(r) / 64];
}

static void check_address(boxroot r, char const *what)
{
  if (r == NULL) bxr_fault("%s: foreign pointer: NULL is not a root", what);
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  size_t i = (uintptr_t *)r - p->slots;
  if ((uintptr_t)r % sizeof(uintptr_t) != 0 || !bxr_is_region(bxr_region_of(r)) || bxr_pool_index(r) == 0 ||
      (uintptr_t *)r < p->slots || i >= BXR_CAPACITY)
    bxr_fault("%s: foreign pointer: %p is not a root", what, (void *)r);
}

void bxr_check_live(boxroot r, char const *what)
{
  check_address(r, what);
  if (boxroot_status() == BOXROOT_TORE_DOWN) bxr_fault("%s: use after teardown of root %p", what, (void *)r);
  if ((bxr_load_acquire(live_word(r)) & live_bit(r)) == 0) bxr_fault("%s: use after delete of root %p", what, (void *)r);
}

void bxr_mark_live(boxroot r)
{
  if ((__atomic_fetch_or(live_word(r), live_bit(r), __ATOMIC_ACQ_REL) & live_bit(r)) != 0)
    bxr_fault("assertion failed: root %p handed out twice", (void *)r);
}

void bxr_mark_dead(boxroot r)
{
  check_address(r, "boxroot_delete");
  if (boxroot_status() == BOXROOT_TORE_DOWN) bxr_fault("boxroot_delete: use after teardown of root %p", (void *)r);
  if ((__atomic_fetch_and(live_word(r), ~live_bit(r), __ATOMIC_ACQ_REL) & live_bit(r)) == 0)
    bxr_fault("boxroot_delete: double delete of root %p", (void *)r);
}

bool bxr_open_account(bxr_region *r) { return map_of(r) != NULL; }

void bxr_forget_roots(bxr_pool *p)
{
  memset(map_of(bxr_region_of(p))->live[bxr_pool_index(p)], 0, sizeof(uint64_t) * BXR_PENDING_WORDS);
}

static void validate_pool(bxr_domain *d, bxr_pool *p, int place)
{
  uint64_t is_free[BXR_PENDING_WORDS] = { 0 };
  uint32_t free = 0;
  bool young = place == BXR_PLACE_YOUNG_AVAIL || place == BXR_PLACE_YOUNG_FULL;
  if (place == BXR_PLACE_IDLE) BXR_ASSERT(bxr_pool_is_empty(p) && p->head.owner == BXR_NOBODY && p->pending_groups == 0);
  bool full = place == BXR_PLACE_YOUNG_FULL || place == BXR_PLACE_OLD_FULL;
  BXR_ASSERT(p->place == place && bxr_at_home(d, p));
  BXR_ASSERT((bxr_load_relaxed(&bxr_region_of(p)->unused) >> bxr_pool_index(p) & 1) == 0);
  BXR_ASSERT(p->head.active <= BXR_CAPACITY);
  for (uintptr_t f = p->head.free; f != BXR_FREE_END; f = *(uintptr_t *)(f - 1)) {
    size_t i = (uintptr_t *)(f - 1) - p->slots;
    BXR_ASSERT((f & 7) == 1 && i < p->head.active && (is_free[i / 64] >> (i % 64) & 1) == 0);
    is_free[i / 64] |= (uint64_t)1 << (i % 64);
    free++;
  }
  if (bxr_awaits_marker(d, p) && !p->adopted) {
    BXR_ASSERT(p->head.active <= p->extent && p->extent <= BXR_CAPACITY);
    for (uint32_t i = p->head.active; i < p->extent; i++) BXR_ASSERT((p->slots[i] & 1) == 1);
  }
  if (p->exact) BXR_ASSERT(p->head.freed == free + BXR_CAPACITY - p->head.active);
  if (full) BXR_ASSERT(free == 0 && p->head.active == BXR_CAPACITY);
  if (p->head.owner == d->head.state) BXR_ASSERT(!full && !bxr_needs_barrier(d, p));
  if (p->head.maker == d->head.state) BXR_ASSERT(p == d->current);
  if (p->head.young_owner == d->head.state) BXR_ASSERT(young && !bxr_needs_barrier(d, p));
  bxr_minor_range range = bxr_runtime_minor_range();
  for (uint32_t i = 0; i < p->head.active; i++) {
    if ((is_free[i / 64] >> (i % 64) & 1) != 0) BXR_ASSERT((p->slots[i] & 1) == 1);
    else if (!young) BXR_ASSERT(!bxr_in_range(range, p->slots[i]));
  }
}

/* From the end of the chain back to its beginning; the pools that the marker has opened come last. */
static void validate_chain(bxr_domain *d)
{
  if (!d->marking || bxr_runtime_marked() || d->runtime_cycle != bxr_runtime_cycle()) return;
  uint64_t n = 0;
  bool opened = false;
  for (bxr_pool *p = d->chain_end; p != NULL; p = p->earlier) {
    BXR_ASSERT(bxr_at_home(d, p) && p->snapshot == d->cycle && !p->adopted && ++n <= d->chain_pools);
    BXR_ASSERT(p->earlier == NULL || p->earlier->slots[p->earlier->extent] == (uintptr_t)p->slots);
    bool visited = bxr_runtime_block_visited(p->block_header);
    BXR_ASSERT(visited || !opened);
    opened = visited;
  }
}

void bxr_validate(bxr_domain *d)
{
  uint64_t in_use = 0, idle = 0;
  for (int place = 0; place < BXR_PLACES; place++) {
    bxr_pool *p = d->list[place];
    if (p != NULL) do {
      BXR_ASSERT(p->next->prev == p && p->prev->next == p);
      validate_pool(d, p, place);
      if (place == BXR_PLACE_IDLE) idle++;
      else in_use++;
      p = p->next;
    } while (p != d->list[place]);
  }
  BXR_ASSERT(in_use == d->count.pools_in_use && idle == d->idle && d->idle_least <= d->idle && d->surplus <= d->idle);
  BXR_ASSERT(d->current == NULL || (d->current->place == BXR_PLACE_YOUNG_AVAIL && d->head.source == &d->current->head));
  BXR_ASSERT(d->spare == NULL || d->spare->place == BXR_PLACE_OLD_AVAIL);
  validate_chain(d);
}
#endif
