/* SPDX-License-Identifier: MIT */
#include "orphans.h"
#include "barrier.h"
#include "chain.h"
#include "depot.h"
#include "fault.h"
#include "fold.h"
#include "idle.h"
#include "place.h"
#include "remote.h"
#include "shelf.h"

BXR_INTERNAL_DATA_HERE bxr_domain bxr_orphans_home = { .head.state = BXR_NOBODY };

/* Pools linked by `next`. Always taken as a whole, so that no pool can leave and return between a thread's look at the
   head and its swap. */
typedef struct {
  bxr_pool *first; /* (atomic) */
  uint64_t count;  /* about how many they are (atomic) */
} stack;

static stack orphans; /* pools of ended domains */

static void push(stack *s, bxr_pool *first, bxr_pool *last, uint64_t n)
{
  (void)bxr_fetch_add_acq_rel(&s->count, n);
  bxr_pool *head = bxr_load_relaxed(&s->first);
  do last->next = head;
  while (!bxr_cas_seq_cst(&s->first, &head, first));
}

static bxr_pool *take(stack *s)
{
  if (bxr_load_relaxed(&s->first) == NULL) return NULL;
  (void)bxr_exchange_acq_rel(&s->count, (uint64_t)0);
  return bxr_exchange_seq_cst(&s->first, (bxr_pool *)NULL);
}

bool bxr_orphans_exist(bool offered_too)
{
  return bxr_load_relaxed(&orphans.first) != NULL || (offered_too && bxr_shelf_count() != 0);
}

uint64_t bxr_orphans_count(void) { return bxr_load_relaxed(&orphans.count) + bxr_shelf_count(); }

void bxr_orphans_add_pool(bxr_pool *p)
{
  bxr_store_seq_cst(&p->home, &bxr_orphans_home);
  push(&orphans, p, p, 1);
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
  uint64_t n = 0;
  for (int place = BXR_PLACE_YOUNG_AVAIL; place < BXR_PLACES; place++)
    for (bxr_pool *p = d->list[place], *end = p, *next; p != NULL; p = next == end ? NULL : next) {
      next = p->next;
      bxr_pool_close(p);
      p->adopted = bxr_barrier_awaits_marker(d, p);
      p->snapshot = p->adopted ? (uint32_t)bxr_runtime_cycle() : 0;
      bxr_store_seq_cst(&p->home, &bxr_orphans_home);
      p->next = first;
      first = p;
      if (last == NULL) last = p;
      n++;
    }
  forget_lists(d);
  bxr_store_relaxed(&d->head.state, BXR_NOBODY);
  if (first != NULL) push(&orphans, first, last, n);
  bxr_remote_forward_all(d);
}

bxr_pool *bxr_orphans_take_all(void)
{
  return bxr_shelf_take_all(take(&orphans));
}

static uint64_t adopt(bxr_domain *d, bxr_pool *first)
{
  if (first == NULL) return 0;
  uint64_t n = 0;
  for (bxr_pool *p = first, *next; p != NULL; p = next) {
    next = p->next;
    int place = p->place;
    bxr_store_seq_cst(&p->home, d);
    p->place = BXR_PLACE_NONE;
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
  return n;
}

void bxr_orphans_adopt(bxr_domain *d, bool offered_too)
{
  (void)adopt(d, offered_too ? bxr_orphans_take_all() : take(&orphans));
}

/* The domain has the lock, so the world is not stopped, and the cycle does not change. Its record must know which cycle
   it is in, or nothing of the domain can be in this cycle's snapshot. */
bool bxr_orphans_adopt_offered(bxr_domain *d)
{
  if (d->scanning || bxr_runtime_is_terminating()) return false;
  if (d->runtime_cycle != bxr_runtime_cycle()) {
    if (d->count.pools_in_use != 0 || d->idle != 0) return false;
    d->runtime_cycle = bxr_runtime_cycle();
    d->marking = false;
  }
  bxr_pool *p = bxr_shelf_take();
  if (p != NULL) p->next = NULL;
  return adopt(d, p) != 0;
}

/* Offered pools are in nobody's snapshot, and hold no young values: only who visits all roots must have them. So what p
   holds is darkened first if the domain's marker has not read it, at most `*darken` times. */
static bool may_offer(bxr_domain *d, bxr_pool *p, int *darken)
{
  if (p == d->spare || bxr_load_relaxed(&p->pending_groups) != 0) return false;
  if (bxr_barrier_needed(d, p) && !bxr_barrier_other_marker(d, p) && *darken > 0) {
    --*darken;
    bxr_chain_darken(d, p);
  }
  return !bxr_barrier_awaits_marker(d, p);
}

static bool offer_pool(bxr_domain *d, bxr_pool *p)
{
  bxr_pool_close(p);
  bxr_place_move(d, p, BXR_PLACE_NONE, false);
  p->place = BXR_PLACE_OLD_ROOMY;
  p->snapshot = 0;
  p->adopted = false;
  bxr_count(&d->count.pools_in_use, -1);
  bxr_store_seq_cst(&p->home, &bxr_orphans_home);
  if (bxr_shelf_put(p)) return true; /* what is on d's list of pending deletions is passed on when its turn comes */
  push(&orphans, p, p, 1);
  return false;
}

void bxr_orphans_offer(bxr_domain *d)
{
  enum { LOOKED_AT = 16, DARKENED = 2 };
  uint64_t n = bxr_shelf_wanted(), given = 0, keep = d->served_before;
  if (BOXROOT_CONSERVATIVE || n == 0) return;
  int darken = DARKENED;
  bxr_place_sort_some(d, LOOKED_AT);
  bxr_pool *p = d->list[BXR_PLACE_OLD_ROOMY];
  for (uint64_t i = 0; i < keep + LOOKED_AT && p != NULL && given < n; i++) {
    bxr_pool *next = p->next == d->list[BXR_PLACE_OLD_ROOMY] ? NULL : p->next;
    if (i >= keep && may_offer(d, p, &darken) && offer_pool(d, p)) given++;
    p = next;
  }
  /* Those that will have room when their deletions need not wait for the marker any more. */
  for (; given < n && darken > 0; darken--) {
    p = bxr_fold_one_waiting(d, BXR_ROOMY, LOOKED_AT);
    if (p == NULL) break;
    if (p->place == BXR_PLACE_OLD_ROOMY && may_offer(d, p, &darken) && offer_pool(d, p)) given++;
  }
  bxr_shelf_supplied(given + bxr_idle_give(d, n - given, keep));
}
