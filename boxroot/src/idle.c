/* SPDX-License-Identifier: MIT */
#include "idle.h"
#include "barrier.h"
#include "depot.h"
#include "fault.h"
#include "place.h"

bxr_pool *bxr_idle_obtain(bxr_domain *d)
{
  bxr_pool *p = d->list[BXR_PLACE_IDLE];
  if (p != NULL) {
    bxr_place_move(d, p, BXR_PLACE_NONE, false);
    d->idle--;
    if (d->idle < d->idle_least) d->idle_least = d->idle;
    if (d->surplus > d->idle) d->surplus = d->idle;
  } else {
    p = bxr_depot_claim();
    if (p == NULL) return NULL;
    bxr_store_seq_cst(&p->home, d);
  }
  bxr_pool_reset(p);
  bxr_count(&d->count.pools_in_use, 1);
  if (d->count.pools_in_use > d->count.pools_peak) bxr_store_relaxed(&d->count.pools_peak, d->count.pools_in_use);
  return p;
}

void bxr_idle_release(bxr_domain *d, bxr_pool *p)
{
  BXR_ASSERT(!bxr_barrier_awaits_marker(d, p));
  BXR_ASSERT(p != d->current && bxr_pool_is_empty(p));
  if (d->spare == p) d->spare = NULL;
  bxr_pool_close(p);
  bxr_place_move(d, p, BXR_PLACE_IDLE, true);
  p->snapshot = 0;
  d->idle++;
  bxr_count(&d->count.pools_in_use, -1);
}

void bxr_idle_release_empty(bxr_domain *d)
{
  static int const places[] = { BXR_PLACE_OLD_ROOMY, BXR_PLACE_OLD_AVAIL, BXR_PLACE_YOUNG_AVAIL };
  for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
    int place = places[i];
    bxr_pool *p = d->list[place];
    if (p == NULL) continue;
    for (bool last = false; !last;) {
      bxr_pool *next = p->next;
      last = next == d->list[place];
      if (p != d->spare && p != d->current) {
        bxr_pool_count(p);
        if (bxr_pool_is_empty(p) && !bxr_barrier_awaits_marker(d, p)) bxr_idle_release(d, p);
      }
      p = next;
    }
  }
}

/* Returns n idle pools to the depot: those that have been idle for longest. */
static void return_idle_pools(bxr_domain *d, uint64_t n, bool all)
{
  bxr_pool *pools[BXR_RETURN_AT_ONCE];
  while (n > 0 && d->idle > 0) {
    unsigned k = 0;
    for (; k < BXR_RETURN_AT_ONCE && k < n && d->idle > 0; k++) {
      pools[k] = d->list[BXR_PLACE_IDLE]->prev;
      bxr_place_move(d, pools[k], BXR_PLACE_NONE, false);
      d->idle--;
    }
    n -= k;
    bxr_count(&d->count.pools_purged, bxr_depot_return(pools, k, all));
  }
  if (d->idle_least > d->idle) d->idle_least = d->idle;
  if (d->surplus > d->idle) d->surplus = d->idle;
}

uint64_t bxr_idle_give(bxr_domain *d, uint64_t n, uint64_t keep)
{
  uint64_t before = d->idle, spared = before > keep ? before - keep : 0;
  return_idle_pools(d, n < spared ? n : spared, false);
  return before - d->idle;
}

void bxr_idle_trim(bxr_domain *d)
{
  uint64_t n = d->surplus < BXR_TRIM_AT_ONCE ? d->surplus : BXR_TRIM_AT_ONCE;
  if (n == 0) return;
  d->surplus -= n;
  return_idle_pools(d, n, true);
}

void bxr_idle_trim_all(bxr_domain *d)
{
  return_idle_pools(d, d->idle, true);
  bxr_depot_trim();
}

void bxr_idle_new_cycle(bxr_domain *d)
{
  d->surplus = d->idle_least > 1 ? d->idle_least - 1 : 0;
  d->idle_least = d->idle;
  if (BXR_COMPACTION_IS_A_CYCLE) return_idle_pools(d, d->surplus, true);
}
