/* SPDX-License-Identifier: MIT */
#include "orphans.h"
#include "delete.h"
#include "depot.h"
#include "drain.h"
#include "records.h"
#include "snapshot.h"

/* --- the shelf ---------------------------------------------------------------------------------------------------- */

/* The shelf holds old pools with room that domains leave for others. Any thread may call these functions; none of them
   waits for another. A pool is put in an empty place by compare-and-swap, and taken by exchange: one at a time, so that
   a domain that needs a pool leaves the others for those that come after it. */
enum { SHELF_CAPACITY = 128 };
static bxr_pool *shelf[SHELF_CAPACITY]; /* (atomic) */
static uint64_t on_shelf;               /* at least the pools on the shelf; exact while the world is stopped (atomic) */
static uint64_t short_of;               /* pools that were looked for, and not supplied since, about (atomic) */
static uint64_t patience;               /* cycles for which that still counts (atomic) */

/* Puts p on the shelf, after which it is not the caller's any more. False if the shelf is full. The pool is counted
   before it can be found, and until it was taken, so that a count of none is true. Cost: a look at the places that are
   taken. */
static bool put_on_shelf(bxr_pool *p)
{
  (void)bxr_fetch_add_acq_rel(&on_shelf, (uint64_t)1);
  for (unsigned i = 0; i < SHELF_CAPACITY; i++) {
    bxr_pool *there = bxr_load_relaxed(&shelf[i]);
    while (there == NULL)
      if (bxr_cas_seq_cst(&shelf[i], &there, p)) return true;
  }
  (void)bxr_fetch_add_acq_rel(&on_shelf, -(uint64_t)1);
  return false;
}

/* Takes a pool; NULL if there is none. Cost: a look at the places that are empty. */
static bxr_pool *take_from_shelf(void)
{
  if (bxr_load_relaxed(&on_shelf) == 0) return NULL;
  for (unsigned i = 0; i < SHELF_CAPACITY; i++) {
    if (bxr_load_relaxed(&shelf[i]) == NULL) continue;
    bxr_pool *p = bxr_exchange_seq_cst(&shelf[i], (bxr_pool *)NULL);
    if (p == NULL) continue;
    (void)bxr_fetch_add_acq_rel(&on_shelf, -(uint64_t)1);
    return p;
  }
  return NULL;
}

/* Takes all, and puts them in front of `others`, linked by `next`. As many are wanted again, unless no domain has
   wanted one for some cycles. */
static bxr_pool *clear_shelf(bxr_pool *others)
{
  uint64_t n = 0;
  for (bxr_pool *p; (p = take_from_shelf()) != NULL; n++) {
    p->next = others;
    others = p;
  }
  if (n != 0 && bxr_load_relaxed(&patience) != 0) bxr_add_relaxed(&short_of, n);
  return others;
}

/* A domain needs a pool and has none with room: a hint for those that have. */
static void want_pool(void)
{
  enum { PATIENCE = 16 }; /* a full collection has three cycles, in which the program wants nothing */
  if (bxr_load_relaxed(&patience) != PATIENCE) bxr_store_relaxed(&patience, (uint64_t)PATIENCE);
  if (bxr_load_relaxed(&short_of) < SHELF_CAPACITY / 2) bxr_add_relaxed(&short_of, 1);
}

/* How many more pools are wanted than there are on the shelf, about. */
static uint64_t pools_wanted(void)
{
  uint64_t n = bxr_load_relaxed(&short_of), there = bxr_load_relaxed(&on_shelf);
  return n > there ? n - there : 0;
}

/* n pools were supplied to those that want some. */
static void count_supplied(uint64_t n)
{
  uint64_t before = bxr_load_relaxed(&short_of);
  bxr_store_relaxed(&short_of, before > n ? before - n : 0);
}

void bxr_orphans_new_cycle(void)
{
  uint64_t left = bxr_load_relaxed(&patience);
  if (left != 0) bxr_store_relaxed(&patience, left - 1);
  else if (bxr_load_relaxed(&short_of) != 0) bxr_store_relaxed(&short_of, (uint64_t)0);
}

/* --- pools of ended domains --------------------------------------------------------------------------------------- */

BXR_INTERNAL_DATA_HERE bxr_domain bxr_orphans_home = { .head.state = BXR_NOBODY };

/* Pools linked by `next`. The stack is always taken as a whole, so that no pool can leave and return between a thread's
   look at the head and its swap. */
typedef struct {
  bxr_pool *first; /* (atomic) */
  uint64_t count;  /* about how many they are (atomic) */
} stack;

static stack orphans;

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
  return bxr_load_relaxed(&orphans.first) != NULL || (offered_too && bxr_load_relaxed(&on_shelf) != 0);
}

uint64_t bxr_orphans_count(void) { return bxr_load_relaxed(&orphans.count) + bxr_load_relaxed(&on_shelf); }

void bxr_orphans_add_pool(bxr_pool *p)
{
  bxr_store_seq_cst(&p->home, &bxr_orphans_home);
  push(&orphans, p, p, 1);
}

static void forget_lists(bxr_domain *d)
{
  for (int i = 0; i < BXR_LISTS; i++) d->lists[i] = NULL;
  d->spare = d->chain_end = NULL;
  d->chain_pools = d->idle = d->idle_least = d->surplus = 0;
  bxr_store_relaxed(&d->count.pools_in_use, 0);
}

/* Returns the idle pools to the depot. Empty pools that the domain's own marker may still read are not idle: they are
   orphaned as the others are, and the adopter waits for the end of the cycle. */
static void return_empty(bxr_domain *d)
{
  bxr_pool *pools[BXR_MOST_RETURNED_AT_ONCE];
  while (d->lists[BXR_LIST_IDLE] != NULL) {
    unsigned n = 0;
    for (; n < BXR_MOST_RETURNED_AT_ONCE && d->lists[BXR_LIST_IDLE] != NULL; n++) {
      pools[n] = d->lists[BXR_LIST_IDLE];
      bxr_list_move(d, pools[n], BXR_LIST_NONE, false);
    }
    bxr_count(&d->count.pools_purged, bxr_depot_return(pools, n, false));
  }
  d->idle = 0;
}

void bxr_orphans_add_domain(bxr_domain *d)
{
  bxr_remote_flush(d);
  void *state = bxr_load_relaxed(&d->head.state);
  if (state == NULL || state == BXR_NOBODY) return; /* it was never used, or is not in use */
  BXR_ASSERT_OWNER(d);
  BXR_ASSERT(!d->scanning);
  bxr_barrier b = bxr_domain_barrier(d);
  (void)bxr_drain_pending(d, b, BXR_DRAIN_ALL);
  bxr_domain_set_current(d, NULL);
  d->spare = NULL;
  bxr_idle_release_empty(d);
  return_empty(d);
  bxr_pool *first = NULL, *last = NULL;
  uint64_t n = 0;
  for (int list = BXR_LIST_YOUNG_AVAIL; list < BXR_LISTS; list++)
    for (bxr_pool *p = d->lists[list], *end = p, *next; p != NULL; p = next == end ? NULL : next) {
      next = p->next;
      bxr_pool_close(p);
      p->other_marker = bxr_pool_unread(p, b);
      p->snapshot_cycle = p->other_marker ? (uint32_t)bxr_runtime_cycle() : 0;
      bxr_store_seq_cst(&p->home, &bxr_orphans_home);
      p->next = first;
      first = p;
      if (last == NULL) last = p;
      n++;
    }
  forget_lists(d);
  bxr_store_relaxed(&d->head.state, BXR_NOBODY);
  bxr_remote_forward_all(d);
  bxr_record_leave(d, first != NULL); /* before others can adopt what it had; it can be another domain's from now on */
  if (first != NULL) push(&orphans, first, last, n);
}

bxr_pool *bxr_orphans_take_all(void) { return clear_shelf(take(&orphans)); }

/* Makes p, an orphan, a pool of d. */
static void adopt(bxr_domain *d, bxr_pool *p)
{
  int list = p->list;
  bxr_store_seq_cst(&p->home, d);
  p->list = BXR_LIST_NONE;
  p->darkened = false;
  p->next = p->prev = p;
  bxr_list_move(d, p, list, false);
  bxr_count(&d->count.pools_in_use, 1);
  if (d->count.pools_in_use > d->count.pools_peak) bxr_store_relaxed(&d->count.pools_peak, d->count.pools_in_use);
  bxr_count(&d->count.pools_adopted, 1);
}

void bxr_orphans_adopt(bxr_domain *d, bool offered_too)
{
  BXR_ASSERT_OWNER(d);
  bxr_domain *home = d;
  for (bxr_pool *p = offered_too ? bxr_orphans_take_all() : take(&orphans), *next; p != NULL; p = next) {
    next = p->next;
    if (p->storage == 0) home = d;
    else if (home->name != p->storage) home = bxr_record_for_orphan(d, p->storage);
    adopt(home, p);
    bxr_barrier b = bxr_domain_barrier(home);
    if (bxr_domain_has_cleared(home, p)) bxr_cleared_put(home, p, b);
    else bxr_owners_publish(home, p, b);
  }
  bxr_remote_forward(&bxr_orphans_home);
  if (!bxr_orphans_exist(false)) bxr_record_no_more_orphans();
}

/* The domain has the lock, so the world is not stopped, and the cycle does not change. The record must say which cycle
   it is, or nothing of the domain can be in this cycle's snapshot. */
bool bxr_orphans_adopt_offered(bxr_domain *d)
{
  BXR_ASSERT_OWNER(d);
  if (!bxr_runtime_is_only_domain()) want_pool();
  if (d->scanning || bxr_runtime_is_terminating()) return false;
  if (d->runtime_cycle != bxr_runtime_cycle()) {
    if (d->count.pools_in_use != 0 || d->idle != 0) return false;
    d->runtime_cycle = bxr_runtime_cycle();
    d->marking = false;
  }
  bxr_pool *p = take_from_shelf();
  if (p == NULL) return false;
  adopt(d, p);
  bxr_owners_publish(d, p, bxr_domain_barrier(d));
  bxr_remote_forward(&bxr_orphans_home);
  return true;
}

/* --- offering ----------------------------------------------------------------------------------------------------- */

/* Offered pools are in nobody's snapshot, and hold no young values: only whoever visits all roots must have them. So
   what p holds is darkened first if the domain's marker has not read it, at most `*darken` times. */
static bool may_offer(bxr_domain *d, bxr_pool *p, bxr_barrier b, int *darken)
{
  if (p == d->spare || bxr_load_relaxed(&p->pending_groups) != 0) return false;
  if (bxr_pool_guarded(p, b) && !bxr_pool_others(p, b) && *darken > 0) {
    --*darken;
    bxr_snapshot_darken(d, p);
    bxr_owners_publish(d, p, b);
  }
  return !bxr_pool_unread(p, b);
}

/* False if the shelf is full: then p is treated as a pool of a domain that has ended. */
static bool offer_pool(bxr_domain *d, bxr_pool *p)
{
  bxr_pool_close(p);
  bxr_list_move(d, p, BXR_LIST_NONE, false);
  p->list = BXR_LIST_OLD_ROOMY;
  p->snapshot_cycle = 0;
  p->other_marker = false;
  bxr_count(&d->count.pools_in_use, -1);
  bxr_store_seq_cst(&p->home, &bxr_orphans_home);
  if (put_on_shelf(p)) return true; /* what is on d's list of pending deletions is passed on when its turn comes */
  push(&orphans, p, p, 1);
  return false;
}

void bxr_orphans_offer(bxr_domain *d)
{
  enum { MOST_LOOKED_AT = 16, MOST_DARKENED = 2 };
  uint64_t n = pools_wanted(), given = 0, keep = d->refills_before;
  if (BOXROOT_CONSERVATIVE || d->storage != NULL || n == 0) return;
  BXR_ASSERT_OWNER(d);
  bxr_barrier b = bxr_domain_barrier(d);
  int darken = MOST_DARKENED;
  bxr_list_sort_some(d, MOST_LOOKED_AT);
  bxr_pool *p = d->lists[BXR_LIST_OLD_ROOMY];
  for (uint64_t i = 0; i < keep + MOST_LOOKED_AT && p != NULL && given < n; i++) {
    bxr_pool *next = p->next == d->lists[BXR_LIST_OLD_ROOMY] ? NULL : p->next;
    if (i >= keep && may_offer(d, p, b, &darken) && offer_pool(d, p)) given++;
    p = next;
  }
  /* Then those that will have room when their deletions need not wait for the marker any more. */
  for (; given < n && darken > 0; darken--) {
    p = bxr_drain_one_waiting(d, b, BXR_ROOMY_LEAST_FREE, MOST_LOOKED_AT);
    if (p == NULL) break;
    if (p->list == BXR_LIST_OLD_ROOMY && may_offer(d, p, b, &darken) && offer_pool(d, p)) given++;
  }
  count_supplied(given + bxr_idle_give(d, n - given, keep));
}
