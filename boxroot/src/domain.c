/* SPDX-License-Identifier: MIT */
#include "domain.h"

BXR_INTERNAL_DATA_HERE bxr_domain bxr_domains[BXR_MAX_DOMAINS];
BXR_INTERNAL_DATA_HERE bxr_domain bxr_orphanage;
static bxr_pool_head nowhere = { BXR_NOBODY, BXR_NOBODY, BXR_NOBODY, BXR_FREE_END, 0, 0 };
#if BXR_OCAML5
BXR_THREAD_LOCAL
#endif
bxr_pool_head *bxr_cache = &nowhere;

void bxr_domain_set_current(bxr_domain *d, bxr_pool *p)
{
  d->current = p;
  d->head.source = p == NULL ? &nowhere : &p->head;
  if (!BXR_OCAML5) bxr_cache = d->head.source;
}

bxr_domain *bxr_domain_here(void)
{
  bxr_domain *d = &bxr_domains[bxr_runtime_domain()];
  if (!bxr_is_domain_of(d, bxr_self())) {
    BXR_ASSERT(d->count.pools_in_use == 0 && d->idle == 0);
    bxr_domain_set_current(d, NULL);
    d->marking = d->scanning = false;
    d->chain_end = NULL;
    if (d->cycle == 0) d->cycle = 1;
    bxr_store_relaxed(&d->head.state, bxr_self());
  }
  return d;
}

void bxr_domain_place(bxr_domain *d, bxr_pool *p, int place, bool front)
{
  if (p->place != BXR_PLACE_NONE) bxr_list_remove(&d->list[p->place], p);
  p->place = (uint8_t)place;
  if (place == BXR_PLACE_NONE) return;
  (front ? bxr_list_push_front : bxr_list_push_back)(&d->list[place], p);
}

bxr_pool *bxr_domain_obtain_pool(bxr_domain *d)
{
  bxr_pool *p = d->list[BXR_PLACE_IDLE];
  if (p != NULL) {
    bxr_domain_place(d, p, BXR_PLACE_NONE, false);
    d->idle--;
    if (d->idle < d->idle_least) d->idle_least = d->idle;
    if (d->surplus > d->idle) d->surplus = d->idle;
  } else {
    p = bxr_region_claim();
    if (p == NULL) return NULL;
    bxr_store_seq_cst(&p->home, d);
  }
  bxr_pool_renew(p);
  bxr_count(&d->count.pools_in_use, 1);
  if (d->count.pools_in_use > d->count.pools_peak) bxr_store_relaxed(&d->count.pools_peak, d->count.pools_in_use);
  return p;
}

void bxr_domain_release_pool(bxr_domain *d, bxr_pool *p)
{
  BXR_ASSERT(!bxr_awaits_marker(d, p));
  BXR_ASSERT(p != d->current && bxr_pool_is_empty(p));
  if (d->spare == p) d->spare = NULL;
  bxr_pool_close(p);
  bxr_domain_place(d, p, BXR_PLACE_IDLE, true);
  p->snapshot = 0;
  d->idle++;
  bxr_count(&d->count.pools_in_use, -1);
}

void bxr_domain_release_empty(bxr_domain *d)
{
  for (int place = BXR_PLACE_OLD_AVAIL; place >= BXR_PLACE_YOUNG_AVAIL; place -= BXR_PLACE_OLD_AVAIL - BXR_PLACE_YOUNG_AVAIL) {
    bxr_pool *p = d->list[place];
    if (p == NULL) continue;
    for (bool last = false; !last;) {
      bxr_pool *next = p->next;
      last = next == d->list[place];
      if (p != d->spare && p != d->current) {
        bxr_pool_count(p);
        if (bxr_pool_is_empty(p) && !bxr_awaits_marker(d, p)) bxr_domain_release_pool(d, p);
      }
      p = next;
    }
  }
}

/* Gives n idle pools back, those that were in use last first kept. */
static void give_back(bxr_domain *d, uint64_t n, bool all)
{
  bxr_pool *pools[BXR_RETURN_AT_ONCE];
  while (n > 0 && d->idle > 0) {
    unsigned k = 0;
    for (; k < BXR_RETURN_AT_ONCE && k < n && d->idle > 0; k++) {
      pools[k] = d->list[BXR_PLACE_IDLE]->prev;
      bxr_domain_place(d, pools[k], BXR_PLACE_NONE, false);
      d->idle--;
    }
    n -= k;
    bxr_count(&d->count.pools_decommitted, bxr_region_return(pools, k, all));
  }
  if (d->idle_least > d->idle) d->idle_least = d->idle;
  if (d->surplus > d->idle) d->surplus = d->idle;
}

void bxr_domain_trim(bxr_domain *d)
{
  uint64_t n = d->surplus < BXR_TRIM_AT_ONCE ? d->surplus : BXR_TRIM_AT_ONCE;
  if (n == 0) return;
  d->surplus -= n;
  give_back(d, n, true);
}

void bxr_domain_trim_all(bxr_domain *d)
{
  give_back(d, d->idle, true);
  bxr_region_trim();
}

void bxr_domain_new_cycle(bxr_domain *d)
{
  d->surplus = d->idle_least > 1 ? d->idle_least - 1 : 0;
  d->idle_least = d->idle;
  if (BXR_COMPACTION_IS_A_CYCLE) give_back(d, d->surplus, true);
}

void bxr_domain_publish(bxr_domain *d, bxr_pool *p)
{
  bool avail = p->place == BXR_PLACE_YOUNG_AVAIL || p->place == BXR_PLACE_OLD_AVAIL;
  void *state = d->head.state;
  void *self = bxr_needs_barrier(d, p) ? BXR_NOBODY : state;
  bxr_store_relaxed(&p->head.owner, avail ? self : BXR_NOBODY);
  bxr_store_relaxed(&p->head.maker, p == d->current ? state : BXR_NOBODY); /* a new root needs no barrier */
  bxr_store_relaxed(&p->head.young_owner, bxr_pool_is_young(p) ? self : BXR_NOBODY);
}

void bxr_domain_freed(bxr_domain *d, bxr_pool *p)
{
  if (p->place == BXR_PLACE_YOUNG_FULL) bxr_domain_place(d, p, BXR_PLACE_YOUNG_AVAIL, true);
  /* Oldest first: the pools at the front had the most time to empty. */
  else if (p->place == BXR_PLACE_OLD_FULL) bxr_domain_place(d, p, BXR_PLACE_OLD_AVAIL, false);
  bxr_domain_publish(d, p);
}
