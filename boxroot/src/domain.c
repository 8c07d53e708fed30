/* SPDX-License-Identifier: MIT */
#include "domain.h"
#include "remote.h"

bxr_domain bxr_domains[BXR_MAX_DOMAINS];
bxr_domain bxr_orphanage;
static bxr_pool_head nowhere = { BXR_NOBODY, BXR_NOBODY, BXR_NOBODY, BXR_FREE_END, 0, 0 };
#if BXR_OCAML5
BXR_THREAD_LOCAL
#endif
bxr_pool_head *bxr_cache = &nowhere;

void bxr_domain_set_current(bxr_domain *d, bxr_pool *p)
{
  d->current = p;
  if (!BXR_OCAML5) bxr_cache = p == NULL ? &nowhere : &p->head;
}

/* Regions of ended domains, linked by `next`. Always taken as a whole. */
static bxr_region *orphans;

bxr_domain *bxr_domain_here(void)
{
  bxr_domain *d = &bxr_domains[bxr_runtime_domain()];
  if (bxr_load_relaxed(&d->state) != bxr_self()) {
    BXR_ASSERT(d->regions == NULL);
    bxr_domain_set_current(d, NULL);
    d->marking = d->scanning = false;
    if (d->cycle == 0) d->cycle = 1;
    bxr_store_relaxed(&d->state, bxr_self());
  }
  return d;
}

void bxr_domain_place(bxr_domain *d, bxr_pool *p, int place, bool front)
{
  if (p->place != BXR_PLACE_NONE) bxr_list_remove(&d->list[p->place], p);
  p->place = place;
  if (place == BXR_PLACE_NONE) return;
  (front ? bxr_list_push_front : bxr_list_push_back)(&d->list[place], p);
}

static void add_region(bxr_domain *d, bxr_region *r)
{
  if (d->regions == NULL) {
    r->next = r->prev = r;
  } else {
    r->next = d->regions;
    r->prev = d->regions->prev;
    r->next->prev = r->prev->next = r;
  }
  d->regions = r;
}

static void remove_region(bxr_domain *d, bxr_region *r)
{
  if (r->next == r) {
    d->regions = NULL;
  } else {
    r->next->prev = r->prev;
    r->prev->next = r->next;
    if (d->regions == r) d->regions = r->next;
  }
}

bxr_pool *bxr_domain_obtain_pool(bxr_domain *d)
{
  bxr_pool *p = NULL;
  bxr_region *r = d->regions;
  if (r != NULL) do {
    bool idle = (r->formatted & ~r->in_use) != 0;
    p = bxr_region_take_pool(r);
    if (p != NULL && idle && d->idle > 0) d->idle--;
    if (p != NULL) break;
    r = r->next;
  } while (r != d->regions);
  if (p == NULL) {
    r = bxr_region_obtain();
    if (r == NULL) return NULL;
    bxr_store_seq_cst(&r->home, d);
    add_region(d, r);
    p = bxr_region_take_pool(r);
  }
  d->regions = r; /* the next search starts where this one ended */
  if (d->idle < d->idle_least) d->idle_least = d->idle;
  bxr_count(&d->count.pools_in_use, 1);
  if (d->count.pools_in_use > d->count.pools_peak) bxr_store_relaxed(&d->count.pools_peak, d->count.pools_in_use);
  return p;
}

void bxr_domain_release_pool(bxr_domain *d, bxr_pool *p)
{
  BXR_ASSERT(!bxr_awaits_marker(d, p));
  BXR_ASSERT(p != d->current);
  if (d->spare == p) d->spare = NULL;
  bxr_domain_place(d, p, BXR_PLACE_NONE, false);
  p->snapshot = 0;
  bxr_region_put_pool(p);
  d->idle++;
  bxr_count(&d->count.pools_in_use, -1);
}

void bxr_domain_trim(bxr_domain *d)
{
  bxr_region *r = d->regions;
  unsigned given = 0;
  for (int visits = 0; visits < 8 && r != NULL && d->surplus > 0 && given < BXR_TRIM_AT_ONCE; visits++) {
    while (d->surplus > 0 && given < BXR_TRIM_AT_ONCE && bxr_region_decommit_one(r)) {
      d->surplus--;
      given++;
    }
    bxr_region *next = r->next;
    if (r->formatted == 1 && next != r) { /* nothing left of it */
      remove_region(d, r);
      bxr_store_seq_cst(&r->home, (bxr_domain *)NULL);
      bxr_region_retire(r);
    }
    r = next;
  }
  d->regions = r;
  d->idle = d->idle > given ? d->idle - given : 0;
  if (d->idle_least > d->idle) d->idle_least = d->idle;
  bxr_count(&d->count.pools_decommitted, given);
}

void bxr_domain_new_cycle(bxr_domain *d)
{
  d->surplus = d->idle_least > 1 ? d->idle_least - 1 : 0;
  d->idle_least = d->idle;
}

void bxr_domain_publish(bxr_domain *d, bxr_pool *p)
{
  bool young = p->place == BXR_PLACE_YOUNG_AVAIL || p->place == BXR_PLACE_YOUNG_FULL;
  bool avail = p->place == BXR_PLACE_YOUNG_AVAIL || p->place == BXR_PLACE_OLD_AVAIL;
  void *self = bxr_needs_barrier(d, p) ? BXR_NOBODY : d->state;
  bxr_store_relaxed(&p->head.owner, avail ? self : BXR_NOBODY);
  bxr_store_relaxed(&p->head.maker, p == d->current ? d->state : BXR_NOBODY); /* a new root needs no barrier */
  bxr_store_relaxed(&p->head.young_owner, young ? self : BXR_NOBODY);
}

void bxr_domain_darken_pool(bxr_domain *d, bxr_pool *p)
{
  bxr_runtime_darken_slots(p->slots, p->head.active);
  p->darkened = true;
  uintptr_t rest = p->slots[p->extent];
  if (!p->adopted && d->splits < BXR_SPLITS && bxr_runtime_skip_block(&p->block_header)) {
    d->splits++;
    if (rest != BXR_FREE_END) bxr_runtime_darken((value)rest);
  }
  bxr_count(&d->count.darkened_pools, 1);
  bxr_domain_publish(d, p);
}

void bxr_orphan_region(bxr_region *first, bxr_region *last)
{
  bxr_region *head = bxr_load_relaxed(&orphans);
  do last->next = head;
  while (!bxr_cas_seq_cst(&orphans, &head, first));
}

static void disown_pools(bxr_region *r)
{
  for (uint64_t m = r->in_use & ~(uint64_t)1; m != 0; m &= m - 1) {
    bxr_pool *p = bxr_region_pool(r, __builtin_ctzll(m));
    bxr_pool_close(p);
  }
}

void bxr_domain_orphan(bxr_domain *d)
{
  bxr_remote_flush(d);
  if (bxr_load_relaxed(&d->state) == BXR_NOBODY) return;
  BXR_ASSERT(!d->scanning);
  bxr_remote_fold(d);
  bxr_domain_set_current(d, NULL);
  bxr_region *first = NULL, *last = NULL;
  while (d->regions != NULL) {
    bxr_region *r = d->regions;
    remove_region(d, r);
    disown_pools(r);
    if (r->in_use == 1) {
      bxr_store_seq_cst(&r->home, (bxr_domain *)NULL);
      bxr_region_retire(r);
      continue;
    }
    bxr_store_seq_cst(&r->home, &bxr_orphanage);
    r->next = first;
    first = r;
    if (last == NULL) last = r;
  }
  if (first != NULL) bxr_orphan_region(first, last);
  for (int i = 0; i < BXR_PLACES; i++) d->list[i] = NULL;
  d->spare = NULL;
  d->snapshot_words = d->idle = d->idle_least = d->surplus = 0;
  bxr_store_relaxed(&d->count.pools_in_use, 0);
  bxr_store_relaxed(&d->state, BXR_NOBODY);
  bxr_remote_forward(d);
}

bool bxr_orphans_exist(void) { return bxr_load_relaxed(&orphans) != NULL; }

void bxr_domain_adopt(bxr_domain *d)
{
  if (bxr_load_relaxed(&orphans) == NULL) return;
  bxr_region *r = bxr_exchange_seq_cst(&orphans, (bxr_region *)NULL);
  while (r != NULL) {
    bxr_region *next = r->next;
    bxr_store_seq_cst(&r->home, d);
    add_region(d, r);
    bxr_count(&d->count.regions_adopted, 1);
    for (uint64_t m = r->in_use & ~(uint64_t)1; m != 0; m &= m - 1) {
      bxr_pool *p = bxr_region_pool(r, __builtin_ctzll(m));
      int place = p->place;
      p->place = BXR_PLACE_NONE;
      p->snapshot = d->cycle;
      p->adopted = true;
      p->darkened = false;
      p->barriers = 0;
      bxr_domain_place(d, p, place, false);
      bxr_domain_publish(d, p);
      bxr_count(&d->count.pools_in_use, 1);
    }
    r = next;
  }
  bxr_remote_forward(&bxr_orphanage);
}

/* The first page of each pool keeps its memory, for the words that tell a late deletion that nobody is at home. */
static void dissolve_region(bxr_region *r)
{
  enum { PAGE = 4096 };
  for (uint64_t m = r->formatted & ~(uint64_t)1; m != 0; m &= m - 1) {
    bxr_pool *p = bxr_region_pool(r, __builtin_ctzll(m));
    bxr_pool_close(p);
    if (BXR_POOL_SIZE > PAGE) bxr_os_decommit((char *)p + PAGE, BXR_POOL_SIZE - PAGE);
  }
  bxr_os_decommit(r, BXR_POOL_SIZE);
  r->in_use = r->formatted = 1;
  bxr_region_retire(r);
}

static void reset(bxr_domain *d)
{
  bxr_counters kept = d->count;
  bxr_domain_set_current(d, NULL);
  kept.pools_in_use = 0;
  *d = (bxr_domain){ .state = BXR_NOBODY, .cycle = d->cycle, .count = kept };
}

void bxr_domain_dissolve(bxr_domain *d)
{
  while (d->regions != NULL) {
    bxr_region *r = d->regions;
    remove_region(d, r);
    disown_pools(r);
    bxr_store_seq_cst(&r->home, &bxr_orphanage);
    if (!d->marking) dissolve_region(r);
  }
  reset(d);
}

void bxr_orphanage_dissolve(void)
{
  for (bxr_region *r = bxr_exchange_seq_cst(&orphans, (bxr_region *)NULL), *next; r != NULL; r = next) {
    next = r->next;
    dissolve_region(r);
  }
  reset(&bxr_orphanage);
}
