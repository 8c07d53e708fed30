/* SPDX-License-Identifier: MIT */
#include "supply.h"
#include "remote.h"
#include <errno.h>

/* A young pool is scanned anyway, so little room is enough. An old one brings old roots into the next minor scan: at most half. */
#define YOUNG_WORTH (BXR_CAPACITY / 16 + 1)
#define OLD_WORTH ((BXR_CAPACITY + 1) / 2)
#define CANDIDATES 4 /* looked at in each search; the others have their turn later */

void bxr_freed_some(bxr_domain *d, bxr_pool *p)
{
  if (p->place == BXR_PLACE_YOUNG_FULL) bxr_domain_place(d, p, BXR_PLACE_YOUNG_AVAIL, true);
  /* Oldest first: the pools at the front had the most time to empty. */
  else if (p->place == BXR_PLACE_OLD_FULL) bxr_domain_place(d, p, BXR_PLACE_OLD_AVAIL, false);
  bxr_domain_publish(d, p);
}

/* The current pool is full, or must not be allocated from any more. */
static void retire_current(bxr_domain *d)
{
  if (d->head.current == &bxr_trap) return;
  bxr_pool *p = (bxr_pool *)d->head.current;
  d->head.current = &bxr_trap;
  p->head.freed = 0;
  p->exact = true;
  bxr_domain_place(d, p, BXR_PLACE_YOUNG_FULL, false);
  bxr_domain_publish(d, p);
}

static bool has_room(bxr_pool *p) { return p->head.free != BXR_FREE_END || bxr_pool_activate(p); }

static void make_current(bxr_domain *d, bxr_pool *p)
{
  if (d->spare == p) d->spare = NULL;
  p->exact = false;
  bxr_domain_place(d, p, BXR_PLACE_YOUNG_AVAIL, true);
  bxr_domain_publish(d, p);
  d->head.current = &p->head;
}

static bxr_pool *search(bxr_domain *d, int place, uint32_t worth, int candidates)
{
  bxr_pool **list = &d->list[place];
  for (int i = 0; i < candidates && *list != NULL; i++) {
    bxr_pool *p = *list;
    if (!bxr_needs_barrier(d, p)) {
      bxr_pool_count(p);
      if (p->head.freed >= worth) return p;
    }
    *list = p->next; /* rotate */
    if (*list == p) break;
  }
  return NULL;
}

bool bxr_refill(bxr_domain *d)
{
  if (!d->scanning) bxr_remote_fold(d);
  if (has_room((bxr_pool *)d->head.current)) return true;
  retire_current(d);
  bxr_pool *p = search(d, BXR_PLACE_YOUNG_AVAIL, YOUNG_WORTH, CANDIDATES);
  if (p == NULL && d->spare != NULL && !bxr_needs_barrier(d, d->spare)) p = d->spare;
  if (p == NULL) p = search(d, BXR_PLACE_OLD_AVAIL, OLD_WORTH, CANDIDATES);
  if (p == NULL) p = bxr_domain_obtain_pool(d);
  if (p == NULL) { /* no memory: any room will do */
    p = search(d, BXR_PLACE_YOUNG_AVAIL, 1, 1000000);
    if (p == NULL) p = search(d, BXR_PLACE_OLD_AVAIL, 1, 1000000);
    if (p == NULL) {
      errno = ENOMEM;
      return false;
    }
  }
  if (!has_room(p)) { /* the spare can be full */
    make_current(d, p);
    return bxr_refill(d);
  }
  make_current(d, p);
  return true;
}
