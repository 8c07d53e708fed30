/* SPDX-License-Identifier: MIT */
#include "succession.h"
#include "remote.h"

/* Pools of ended domains, linked by `next`. Always taken as a whole, so that no pool can leave and return between a thread's look
   at the head and its swap. */
static bxr_pool *orphans;

bool bxr_orphans_exist(void) { return bxr_load_relaxed(&orphans) != NULL; }

static void push_orphans(bxr_pool *first, bxr_pool *last)
{
  bxr_pool *head = bxr_load_relaxed(&orphans);
  do last->next = head;
  while (!bxr_cas_seq_cst(&orphans, &head, first));
}

void bxr_orphan_pool(bxr_pool *p)
{
  bxr_store_seq_cst(&p->home, &bxr_orphanage);
  push_orphans(p, p);
}

static void forget_lists(bxr_domain *d)
{
  for (int i = 0; i < BXR_PLACES; i++) d->list[i] = NULL;
  d->spare = d->chain_end = NULL;
  d->chain_pools = d->idle = d->idle_least = d->surplus = 0;
  bxr_store_relaxed(&d->count.pools_in_use, 0);
}

/* Empty pools that the domain's own marker may still read go with the others: whoever adopts them waits for the end of the cycle. */
static void return_idle(bxr_domain *d)
{
  bxr_pool *pools[BXR_RETURN_AT_ONCE];
  while (d->list[BXR_PLACE_IDLE] != NULL) {
    unsigned n = 0;
    for (; n < BXR_RETURN_AT_ONCE && d->list[BXR_PLACE_IDLE] != NULL; n++) {
      pools[n] = d->list[BXR_PLACE_IDLE];
      bxr_domain_place(d, pools[n], BXR_PLACE_NONE, false);
    }
    bxr_count(&d->count.pools_decommitted, bxr_region_return(pools, n, false));
  }
  d->idle = 0;
}

void bxr_orphan(bxr_domain *d)
{
  bxr_remote_flush(d);
  if (bxr_load_relaxed(&d->head.state) == BXR_NOBODY) return;
  BXR_ASSERT(!d->scanning);
  (void)bxr_remote_fold(d, BXR_FOLD_ALL);
  bxr_domain_set_current(d, NULL);
  d->spare = NULL;
  bxr_domain_release_empty(d);
  return_idle(d);
  bxr_pool *first = NULL, *last = NULL;
  for (int place = BXR_PLACE_YOUNG_AVAIL; place < BXR_PLACES; place++)
    for (bxr_pool *p = d->list[place], *end = p, *next; p != NULL; p = next == end ? NULL : next) {
      next = p->next;
      bxr_pool_close(p);
      bxr_store_seq_cst(&p->home, &bxr_orphanage);
      p->next = first;
      first = p;
      if (last == NULL) last = p;
    }
  forget_lists(d);
  bxr_store_relaxed(&d->head.state, BXR_NOBODY);
  if (first != NULL) push_orphans(first, last);
  bxr_remote_forward_all(d);
}

void bxr_adopt(bxr_domain *d)
{
  if (!bxr_orphans_exist()) return;
  uint64_t n = 0;
  for (bxr_pool *p = bxr_exchange_seq_cst(&orphans, (bxr_pool *)NULL), *next; p != NULL; p = next) {
    next = p->next;
    int place = p->place;
    bxr_store_seq_cst(&p->home, d);
    p->place = BXR_PLACE_NONE;
    p->snapshot = d->cycle;
    p->adopted = true;
    p->darkened = false;
    p->next = p->prev = p;
    bxr_domain_place(d, p, place, false);
    bxr_domain_publish(d, p);
    n++;
  }
  bxr_count(&d->count.pools_in_use, n);
  if (d->count.pools_in_use > d->count.pools_peak) bxr_store_relaxed(&d->count.pools_peak, d->count.pools_in_use);
  bxr_count(&d->count.pools_adopted, n);
  bxr_remote_forward(&bxr_orphanage);
}

/* --- teardown ---------------------------------------------------------------------------------------------------------- */

/* Void roots may still be deleted: their pool's words must say that nobody is at home. */
static void dissolve_pools(bxr_pool **pools, unsigned n, bool give)
{
  for (unsigned i = 0; i < n; i++) {
    bxr_pool_close(pools[i]);
    bxr_remote_forget(pools[i]);
    if (!give) bxr_store_seq_cst(&pools[i]->home, (bxr_domain *)NULL);
    else bxr_pool_renew(pools[i]);
  }
  if (!give) return;
  (void)bxr_region_return(pools, n, true);
  for (unsigned i = 0; i < n; i++) bxr_pool_close(pools[i]);
}

static void dissolve_ring(bxr_pool *ring, bool give)
{
  bxr_pool *pools[BXR_RETURN_AT_ONCE];
  for (bxr_pool *p = ring; p != NULL;) {
    unsigned n = 0;
    do {
      pools[n++] = p;
      p = p->next == ring ? NULL : p->next;
    } while (p != NULL && n < BXR_RETURN_AT_ONCE);
    dissolve_pools(pools, n, give);
  }
}

static void reset(bxr_domain *d)
{
  bxr_counters kept = d->count;
  kept.pools_in_use = 0;
  uint32_t cycle = d->cycle;
  *d = (bxr_domain){ .cycle = cycle, .count = kept };
  bxr_store_relaxed(&d->head.state, BXR_NOBODY);
  bxr_domain_set_current(d, NULL);
}

void bxr_dissolve(bxr_domain *d)
{
  for (int place = 0; place < BXR_PLACES; place++) dissolve_ring(d->list[place], place == BXR_PLACE_IDLE || !d->marking);
  reset(d);
}

void bxr_dissolve_orphans(void)
{
  for (bxr_pool *p = bxr_exchange_seq_cst(&orphans, (bxr_pool *)NULL), *next; p != NULL; p = next) {
    next = p->next;
    dissolve_pools(&p, 1, true);
  }
  reset(&bxr_orphanage);
  bxr_region_trim();
}
