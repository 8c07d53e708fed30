/* SPDX-License-Identifier: MIT */
#include "orphans.h"
#include "depot.h"
#include "fault.h"
#include "fold.h"
#include "idle.h"
#include "place.h"
#include "remote.h"

BXR_INTERNAL_DATA_HERE bxr_domain bxr_orphans_home;

/* Pools of ended domains, linked by `next`. Always taken as a whole, so that no pool can leave and return between a
   thread's look at the head and its swap. */
static bxr_pool *orphans; /* (atomic) */

bool bxr_orphans_exist(void) { return bxr_load_relaxed(&orphans) != NULL; }

static void push_orphans(bxr_pool *first, bxr_pool *last)
{
  bxr_pool *head = bxr_load_relaxed(&orphans);
  do last->next = head;
  while (!bxr_cas_seq_cst(&orphans, &head, first));
}

void bxr_orphans_add_pool(bxr_pool *p)
{
  bxr_store_seq_cst(&p->home, &bxr_orphans_home);
  push_orphans(p, p);
}

static void forget_lists(bxr_domain *d)
{
  for (int i = 0; i < BXR_PLACES; i++) d->list[i] = NULL;
  d->spare = d->chain_end = NULL;
  d->chain_pools = d->idle = d->idle_least = d->surplus = 0;
  bxr_store_relaxed(&d->count.pools_in_use, 0);
}

/* Empty pools that the domain's own marker may still read are orphaned as the others are: the adopter waits for the end
   of the cycle. */
static void return_empty(bxr_domain *d)
{
  bxr_pool *pools[BXR_RETURN_AT_ONCE];
  while (d->list[BXR_PLACE_IDLE] != NULL) {
    unsigned n = 0;
    for (; n < BXR_RETURN_AT_ONCE && d->list[BXR_PLACE_IDLE] != NULL; n++) {
      pools[n] = d->list[BXR_PLACE_IDLE];
      bxr_place_move(d, pools[n], BXR_PLACE_NONE, false);
    }
    bxr_count(&d->count.pools_purged, bxr_depot_return(pools, n, false));
  }
  d->idle = 0;
}

void bxr_orphans_add_domain(bxr_domain *d)
{
  bxr_remote_flush(d);
  if (bxr_load_relaxed(&d->head.state) == BXR_NOBODY) return;
  BXR_ASSERT(!d->scanning);
  (void)bxr_fold_pending(d, BXR_FOLD_ALL);
  bxr_domain_set_current(d, NULL);
  d->spare = NULL;
  bxr_idle_release_empty(d);
  return_empty(d);
  bxr_pool *first = NULL, *last = NULL;
  for (int place = BXR_PLACE_YOUNG_AVAIL; place < BXR_PLACES; place++)
    for (bxr_pool *p = d->list[place], *end = p, *next; p != NULL; p = next == end ? NULL : next) {
      next = p->next;
      bxr_pool_close(p);
      bxr_store_seq_cst(&p->home, &bxr_orphans_home);
      p->next = first;
      first = p;
      if (last == NULL) last = p;
    }
  forget_lists(d);
  bxr_store_relaxed(&d->head.state, BXR_NOBODY);
  if (first != NULL) push_orphans(first, last);
  bxr_remote_forward_all(d);
}

bxr_pool *bxr_orphans_take_all(void) { return bxr_exchange_seq_cst(&orphans, (bxr_pool *)NULL); }

void bxr_orphans_adopt(bxr_domain *d)
{
  if (!bxr_orphans_exist()) return;
  uint64_t n = 0;
  for (bxr_pool *p = bxr_orphans_take_all(), *next; p != NULL; p = next) {
    next = p->next;
    int place = p->place;
    bxr_store_seq_cst(&p->home, d);
    p->place = BXR_PLACE_NONE;
    p->snapshot = d->cycle;
    p->adopted = true;
    p->darkened = false;
    p->next = p->prev = p;
    bxr_place_move(d, p, place, false);
    bxr_place_publish(d, p);
    n++;
  }
  bxr_count(&d->count.pools_in_use, n);
  if (d->count.pools_in_use > d->count.pools_peak) bxr_store_relaxed(&d->count.pools_peak, d->count.pools_in_use);
  bxr_count(&d->count.pools_adopted, n);
  bxr_remote_forward(&bxr_orphans_home);
}
