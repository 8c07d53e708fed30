/* SPDX-License-Identifier: MIT */
#include "supply.h"
#include "orphans.h"
#include "remote.h"
#include "snapshot.h"

/* A young pool is scanned anyway, so little room is enough. An old one brings old roots into the next minor scan, so at
   least half of it must be free (BXR_ROOMY_LEAST_FREE). */
#define LEAST_FREE_IN_YOUNG (BXR_CAPACITY / 16 + 1)
#define MOST_MARKED_AT_ONCE (BXR_CAPACITY / 16 + 1) /* so many values are always worth marking at once */
#define MOST_CANDIDATES 4 /* that a search looks at; the others have their turn later */

void bxr_supply_retire(bxr_domain *d)
{
  bxr_pool *p = d->current;
  if (p == NULL) return;
  bxr_domain_set_current(d, NULL);
  bool listed = p->head.free != BXR_FREE_END;
  if (!listed) {
    p->head.freed = BXR_CAPACITY - p->head.active;
    p->freed_is_exact = true;
  }
  bxr_list_move(d, p, listed || p->head.freed != 0 ? BXR_LIST_YOUNG_AVAIL : BXR_LIST_YOUNG_FULL, false);
  bxr_owners_publish(d, p);
}

static bool has_room(bxr_domain *d, bxr_pool *p)
{
  return p->head.free != BXR_FREE_END ||
         bxr_pool_activate(p, bxr_barrier_awaits_marker(d, p) ? p->marker_limit : BXR_CAPACITY);
}

static void make_current(bxr_domain *d, bxr_pool *p)
{
  if (d->spare == p) d->spare = NULL;
  p->freed_is_exact = false;
  bxr_list_move(d, p, BXR_LIST_YOUNG_AVAIL, true);
  bxr_domain_set_current(d, p);
  bxr_owners_publish(d, p);
  d->refills++;
}

/* Whether p can serve new roots, with room for at least `worth` of them. A pool that another domain's marker may read
   cannot. One that needs the barrier can when the marker's work on it is done right here; that happens when the work is
   little, or when `thrift` says that pools should be saved. */
static bool serves(bxr_domain *d, bxr_pool *p, uint32_t worth, bool thrift)
{
  bxr_pool_count(p);
  if (bxr_barrier_other_marker(d, p) || p->head.freed < worth || !has_room(d, p)) return false;
  if (bxr_barrier_needed(d, p)) {
    if (!thrift && BXR_CAPACITY - p->head.freed > MOST_MARKED_AT_ONCE) return false;
    bxr_snapshot_darken(d, p);
  }
  return true;
}

static bxr_pool *search_list(bxr_domain *d, int which, uint32_t worth, int candidates, bool thrift)
{
  bxr_pool **list = &d->lists[which], *first = *list;
  for (int i = 0; i < candidates && *list != NULL; i++) {
    bxr_pool *p = *list;
    if (serves(d, p, worth, thrift)) return p;
    *list = p->next; /* rotate */
    if (*list == first) break; /* all were looked at: a pool that does not serve stays on the list */
  }
  return NULL;
}

static bxr_pool *search_all(bxr_domain *d, bool thrift)
{
  bxr_pool *p = search_list(d, BXR_LIST_YOUNG_AVAIL, LEAST_FREE_IN_YOUNG, MOST_CANDIDATES, thrift);
  if (p == NULL && d->spare != NULL && has_room(d, d->spare)) p = d->spare;
  if (p == NULL) {
    bxr_list_sort_some(d, MOST_CANDIDATES);
    p = search_list(d, BXR_LIST_OLD_ROOMY, BXR_ROOMY_LEAST_FREE, MOST_CANDIDATES, thrift);
  }
  return p;
}

/* There is no memory: any room will do, at any cost. */
static bxr_pool *search_thoroughly(bxr_domain *d)
{
  if (!d->scanning) {
    bxr_remote_flush(d);
    (void)bxr_drain_pending(d, BXR_DRAIN_ALL);
    while (bxr_drain_one_waiting(d, 1, INT32_MAX) != NULL) {}
  }
  bxr_pool *p = search_list(d, BXR_LIST_YOUNG_AVAIL, 1, INT32_MAX, true);
  if (p == NULL) p = search_list(d, BXR_LIST_OLD_ROOMY, 1, INT32_MAX, true);
  if (p == NULL) p = search_list(d, BXR_LIST_OLD_AVAIL, 1, INT32_MAX, true);
  return p != NULL ? p : bxr_idle_obtain(d);
}

bool bxr_supply_refill(bxr_domain *d)
{
  if (bxr_domain_has_pending(d) && !d->scanning) (void)bxr_drain_pending(d, BXR_DRAIN_BUDGET_IN_CREATE);
  if (d->current != NULL && has_room(d, d->current)) return true;
  bxr_supply_retire(d);
  bool thrift = d->count.pools_in_use > d->count.roots_last_cycle * 5 / 4 / BXR_CAPACITY + 4;
  bxr_pool *p = search_all(d, thrift);
  if (p == NULL && thrift && d->waiting.first != NULL && !d->scanning &&
      bxr_drain_one_waiting(d, BXR_ROOMY_LEAST_FREE, MOST_CANDIDATES) != NULL)
    p = search_all(d, true);
  if (p == NULL && d->storage == NULL && bxr_orphans_adopt_offered(d)) p = search_all(d, thrift);
  if (p == NULL) p = bxr_idle_obtain(d);
  if (p == NULL) p = search_thoroughly(d);
  if (p == NULL) {
    errno = ENOMEM;
    return false;
  }
  make_current(d, p);
  return has_room(d, p);
}
