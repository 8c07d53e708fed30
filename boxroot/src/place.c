/* SPDX-License-Identifier: MIT */
#include "place.h"
#include "barrier.h"

void bxr_place_move(bxr_domain *d, bxr_pool *p, int place, bool front)
{
  if (p->place != BXR_PLACE_NONE) bxr_pool_list_remove(&d->list[p->place], p);
  p->place = (uint8_t)place;
  if (place == BXR_PLACE_NONE) return;
  (front ? bxr_pool_list_push_front : bxr_pool_list_push_back)(&d->list[place], p);
}

void bxr_place_sort(bxr_domain *d, bxr_pool *p)
{
  int place = p->exact && p->head.freed >= BXR_ROOMY ? BXR_PLACE_OLD_ROOMY : BXR_PLACE_OLD_AVAIL;
  if (place != p->place) bxr_place_move(d, p, place, false);
}

void bxr_place_sort_some(bxr_domain *d, int pools)
{
  bxr_pool **list = &d->list[BXR_PLACE_OLD_AVAIL], *last = *list == NULL ? NULL : (*list)->prev;
  for (int i = 0; i < pools && *list != NULL; i++) {
    bxr_pool *p = *list;
    *list = p->next; /* rotate */
    __builtin_prefetch(*list);
    bxr_pool_count(p);
    bxr_place_sort(d, p);
    if (p == last) break;
  }
}

void bxr_place_publish(bxr_domain *d, bxr_pool *p)
{
  bool avail =
    p->place == BXR_PLACE_YOUNG_AVAIL || p->place == BXR_PLACE_OLD_ROOMY || p->place == BXR_PLACE_OLD_AVAIL;
  void *state = d->head.state;
  void *self = d->strays != BXR_RUNTIME_NO_STRAYS || bxr_barrier_needed(d, p) ? BXR_NOBODY : state;
  bxr_store_relaxed(&p->head.owner, avail ? self : BXR_NOBODY);
  bool makes = p == d->current && d->strays != BXR_RUNTIME_OLD_STRAYS;
  bxr_store_relaxed(&p->head.maker, makes ? state : BXR_NOBODY); /* a new root needs no barrier */
  bxr_store_relaxed(&p->head.young_owner, bxr_pool_is_young(p) ? self : BXR_NOBODY);
}

void bxr_place_freed(bxr_domain *d, bxr_pool *p)
{
  if (p->place == BXR_PLACE_YOUNG_FULL) bxr_place_move(d, p, BXR_PLACE_YOUNG_AVAIL, true);
  else if (p->place == BXR_PLACE_OLD_FULL || p->place == BXR_PLACE_OLD_AVAIL) bxr_place_sort(d, p);
  bxr_place_publish(d, p);
}
