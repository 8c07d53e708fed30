/* SPDX-License-Identifier: MIT */
#include "supply.h"
#include "delete.h"
#include "drain.h"
#include "orphans.h"
#include "snapshot.h"

/* A young pool is scanned anyway, so little room is enough. An old one brings old roots into the next minor scan, so at
   least half of it must be free (BXR_ROOMY_LEAST_FREE). */
#define LEAST_FREE_IN_YOUNG (BXR_CAPACITY / 16 + 1)
#define MOST_MARKED_AT_ONCE (BXR_CAPACITY / 16 + 1) /* so many values are always worth marking at once */
#define MOST_CANDIDATES 4 /* that a search looks at; the others have their turn later */

/* Whether p can serve new roots, with room for at least `worth` of them. A pool that another domain's marker may read
   cannot. One that needs the barrier can when the marker's work on it is done right here; that happens when the work is
   little, or when `thrift` says that pools should be saved. */
static bool serves(bxr_domain *d, bxr_pool *p, bxr_barrier b, uint32_t worth, bool thrift)
{
  bxr_pool_count(p);
  if (bxr_pool_others(p, b) || p->head.freed < worth || !bxr_pool_has_room(p, b)) return false;
  if (bxr_pool_guarded(p, b)) {
    if (!thrift && BXR_CAPACITY - p->head.freed > MOST_MARKED_AT_ONCE) return false;
    bxr_snapshot_darken(d, p);
  }
  return true;
}

static bxr_pool *search_list(bxr_domain *d, bxr_barrier b, int which, uint32_t worth, int candidates, bool thrift)
{
  bxr_pool **list = &d->lists[which], *first = *list;
  for (int i = 0; i < candidates && *list != NULL; i++) {
    bxr_pool *p = *list;
    if (serves(d, p, b, worth, thrift)) return p;
    *list = p->next; /* rotate */
    if (*list == first) break; /* all were looked at: a pool that does not serve stays on the list */
  }
  return NULL;
}

static bxr_pool *search_all(bxr_domain *d, bxr_barrier b, bool thrift)
{
  bxr_pool *p = search_list(d, b, BXR_LIST_YOUNG_AVAIL, LEAST_FREE_IN_YOUNG, MOST_CANDIDATES, thrift);
  if (p == NULL && d->spare != NULL && bxr_pool_has_room(d->spare, b)) p = d->spare;
  if (p == NULL) {
    bxr_list_sort_some(d, MOST_CANDIDATES);
    p = search_list(d, b, BXR_LIST_OLD_ROOMY, BXR_ROOMY_LEAST_FREE, MOST_CANDIDATES, thrift);
  }
  return p;
}

/* There is no memory: any room will do, at any cost. */
static bxr_pool *search_thoroughly(bxr_domain *d, bxr_barrier b)
{
  if (!d->scanning) {
    bxr_remote_flush(d);
    (void)bxr_drain_pending(d, b, BXR_DRAIN_ALL);
    while (bxr_drain_one_waiting(d, b, 1, INT32_MAX) != NULL) {}
  }
  bxr_pool *p = search_list(d, b, BXR_LIST_YOUNG_AVAIL, 1, INT32_MAX, true);
  if (p == NULL) p = search_list(d, b, BXR_LIST_OLD_ROOMY, 1, INT32_MAX, true);
  if (p == NULL) p = search_list(d, b, BXR_LIST_OLD_AVAIL, 1, INT32_MAX, true);
  return p != NULL ? p : bxr_idle_obtain(d, b);
}

bool bxr_supply_refill(bxr_domain *d)
{
  BXR_ASSERT_OWNER(d);
  bxr_barrier b = bxr_domain_barrier(d);
  if (!d->scanning && bxr_drain_has_work(d)) (void)bxr_drain_pending(d, b, BXR_DRAIN_BUDGET_IN_CREATE);
  if (d->current != NULL && bxr_pool_has_room(d->current, b)) return true;
  bxr_domain_retire(d, b);
  bool thrift = d->count.pools_in_use > d->count.roots_last_cycle * 5 / 4 / BXR_CAPACITY + 4;
  bxr_pool *p = search_all(d, b, thrift);
  if (p == NULL && thrift && d->waiting.first != NULL && !d->scanning &&
      bxr_drain_one_waiting(d, b, BXR_ROOMY_LEAST_FREE, MOST_CANDIDATES) != NULL)
    p = search_all(d, b, true);
  if (p == NULL && d->storage == NULL && bxr_orphans_adopt_offered(d)) p = search_all(d, b, thrift);
  if (p == NULL) p = bxr_idle_obtain(d, b);
  if (p == NULL) p = search_thoroughly(d, b);
  if (p == NULL) {
    errno = ENOMEM;
    return false;
  }
  bxr_domain_use(d, p, b);
  return true;
}
