/* SPDX-License-Identifier: MIT */
#include "domain.h"
#include "depot.h"

BXR_INTERNAL_DATA_HERE bxr_domain bxr_domains[BXR_MAX_DOMAINS];
BXR_INTERNAL_DATA_HERE unsigned bxr_domains_end;
BXR_INTERNAL_DATA_HERE bool bxr_domain_all_slow;

void bxr_domain_set_current(bxr_domain *d, bxr_pool *p)
{
  d->current = p;
  bool inline_too = p != NULL && BXR_LIKELY(!bxr_load_relaxed(&bxr_domain_all_slow));
  bxr_store_relaxed(&d->head.source, inline_too ? &p->head : &bxr_no_pool); /* atomic: see rename_to, records.c */
  if (!BXR_OCAML5 && d->storage == NULL) bxr_domain_offer(d);
}

void bxr_domain_offer(bxr_domain *d)
{
  bxr_cache = bxr_runtime_may_end_unseen() ? &bxr_no_pool : d->head.source;
}

void bxr_domain_close(bxr_domain *d)
{
  bxr_domain_set_current(d, d->current);
  bxr_store_relaxed(&d->current->head.alloc_owner, BXR_NOBODY);
}

/* d, the first record of this domain, is about to be used. */
static void raise_end(bxr_domain *d)
{
  unsigned id = (unsigned)(d - bxr_domains), end = bxr_load_relaxed(&bxr_domains_end);
  while (end <= id && !bxr_cas_acq_rel(&bxr_domains_end, &end, id + 1)) {}
}

void bxr_domain_prepare(bxr_domain *d)
{
  BXR_ASSERT_LOCK();
  if (bxr_domain_is(d, bxr_self())) return;
  bxr_domain *first = &bxr_domains[bxr_runtime_domain()];
  BXR_ASSERT(d->count.pools_in_use == 0 && d->idle == 0);
  bxr_domain_set_current(d, NULL);
  d->marking = d->scanning = false;
  d->refills = d->refills_before = 0;
  d->chain_end = NULL;
  d->chain_pools = d->pushed = 0;
  d->strays = d == first ? bxr_runtime_strays_here() : first->strays;
  if (d == first) raise_end(d);
  if (d->cycle == 0) d->cycle = 1;
  bxr_store_relaxed(&d->head.state, bxr_self());
}

bool bxr_domain_may_touch(bxr_domain *d, void *self) { return d != NULL && bxr_domain_is(d, self) && !d->scanning; }

bxr_domain *bxr_domain_here(void)
{
  bxr_domain *d = &bxr_domains[bxr_runtime_domain()];
  bxr_domain_prepare(d);
  return d;
}

bxr_barrier bxr_domain_barrier(bxr_domain *d)
{
  BXR_ASSERT_OWNER(d);
  if (BOXROOT_STW_SCAN) return BXR_NO_BARRIER; /* all roots are visited at once: no marker reads pools */
  uintptr_t runtime_cycle = bxr_runtime_cycle();
  bool marking = d->marking && d->runtime_cycle == runtime_cycle;
  if (marking && bxr_runtime_marking_done()) marking = d->marking = false;
  return (bxr_barrier){ { marking ? d->cycle : BXR_NO_CYCLE, (uint32_t)runtime_cycle } };
}

/* --- pool lists --------------------------------------------------------------------------------------------------- */

/* A list of pools is a ring, named by its first pool; NULL when it is empty. */
static void ring_push(bxr_pool **list, bxr_pool *p)
{
  bxr_pool *first = *list;
  if (first == NULL) {
    p->next = p->prev = p;
    *list = p;
  } else {
    p->next = first;
    p->prev = first->prev;
    first->prev->next = p;
    first->prev = p;
  }
}

static void ring_remove(bxr_pool **list, bxr_pool *p)
{
  BXR_ASSERT(*list != NULL);
  if (p->next == p) {
    BXR_ASSERT(*list == p);
    *list = NULL;
  } else {
    p->next->prev = p->prev;
    p->prev->next = p->next;
    if (*list == p) *list = p->next;
  }
  p->next = p->prev = p;
}

void bxr_list_move(bxr_domain *d, bxr_pool *p, int list, bool front)
{
  if (p->list != BXR_LIST_NONE) ring_remove(&d->lists[p->list], p);
  p->list = (uint8_t)list;
  if (list == BXR_LIST_NONE) return;
  ring_push(&d->lists[list], p);
  if (front) d->lists[list] = p;
}

void bxr_list_sort(bxr_domain *d, bxr_pool *p)
{
  int list = p->freed_is_exact && p->head.freed >= BXR_ROOMY_LEAST_FREE ? BXR_LIST_OLD_ROOMY : BXR_LIST_OLD_AVAIL;
  if (list != p->list) bxr_list_move(d, p, list, false);
}

void bxr_list_sort_some(bxr_domain *d, int pools)
{
  BXR_ASSERT_OWNER(d);
  bxr_pool **list = &d->lists[BXR_LIST_OLD_AVAIL], *last = *list == NULL ? NULL : (*list)->prev;
  for (int i = 0; i < pools && *list != NULL; i++) {
    bxr_pool *p = *list;
    *list = p->next; /* rotate */
    __builtin_prefetch(*list);
    bxr_pool_count(p);
    bxr_list_sort(d, p);
    if (p == last) break;
  }
}

void bxr_owners_publish(bxr_domain *d, bxr_pool *p, bxr_barrier b)
{
  BXR_ASSERT_OWNER(d);
  bool avail =
    p->list == BXR_LIST_YOUNG_AVAIL || p->list == BXR_LIST_OLD_ROOMY || p->list == BXR_LIST_OLD_AVAIL;
  void *state = d->head.state;
  void *self = d->strays != BXR_RUNTIME_NO_STRAYS || bxr_pool_guarded(p, b) ? BXR_NOBODY : state;
  bxr_store_relaxed(&p->head.free_owner, avail ? self : BXR_NOBODY);
  /* a thread that knew the pool before it was a storage's must not make other roots in it */
  bool makes = &p->head == d->head.source && d->storage == NULL && d->strays != BXR_RUNTIME_OLD_STRAYS;
  bxr_store_relaxed(&p->head.alloc_owner, makes ? state : BXR_NOBODY); /* a new root needs no barrier */
  bxr_store_relaxed(&p->head.store_owner, bxr_list_is_young(p->list) ? self : BXR_NOBODY);
}

void bxr_list_after_free(bxr_domain *d, bxr_pool *p, bxr_barrier b)
{
  if (p->list == BXR_LIST_YOUNG_FULL) bxr_list_move(d, p, BXR_LIST_YOUNG_AVAIL, true);
  else if (p->list == BXR_LIST_OLD_FULL || p->list == BXR_LIST_OLD_AVAIL) bxr_list_sort(d, p);
  bxr_owners_publish(d, p, b);
}

/* --- the current pool --------------------------------------------------------------------------------------------- */

void bxr_domain_use(bxr_domain *d, bxr_pool *p, bxr_barrier b)
{
  if (d->spare == p) d->spare = NULL;
  p->freed_is_exact = false;
  bxr_list_move(d, p, BXR_LIST_YOUNG_AVAIL, true);
  bxr_domain_set_current(d, p);
  bxr_owners_publish(d, p, b);
  d->refills++;
}

void bxr_domain_retire(bxr_domain *d, bxr_barrier b)
{
  bxr_pool *p = d->current;
  if (p == NULL) return;
  BXR_ASSERT_OWNER(d);
  bxr_domain_set_current(d, NULL);
  bool listed = p->head.free != BXR_FREE_END;
  if (!listed) {
    p->head.freed = BXR_CAPACITY - p->head.active;
    p->freed_is_exact = true;
  }
  bxr_list_move(d, p, listed || p->head.freed != 0 ? BXR_LIST_YOUNG_AVAIL : BXR_LIST_YOUNG_FULL, false);
  bxr_owners_publish(d, p, b);
}

/* --- idle pools --------------------------------------------------------------------------------------------------- */

bxr_pool *bxr_idle_obtain(bxr_domain *d, bxr_barrier b)
{
  BXR_ASSERT_OWNER(d);
  bxr_pool *p = d->lists[BXR_LIST_IDLE];
  if (p != NULL) {
    bxr_list_move(d, p, BXR_LIST_NONE, false);
    d->idle--;
    if (d->idle < d->idle_least) d->idle_least = d->idle;
    if (d->surplus > d->idle) d->surplus = d->idle;
  } else {
    p = bxr_depot_claim();
    if (p == NULL) return NULL;
    bxr_store_seq_cst(&p->home, d);
  }
  bxr_store_relaxed(&p->storage, d->name);
  p->wider = d->wider;
  bxr_pool_reset(p);
  (void)bxr_pool_has_room(p, b);
  bxr_count(&d->count.pools_in_use, 1);
  if (d->count.pools_in_use > d->count.pools_peak) bxr_store_relaxed(&d->count.pools_peak, d->count.pools_in_use);
  return p;
}

void bxr_idle_release(bxr_domain *d, bxr_pool *p, bxr_barrier b)
{
  BXR_ASSERT(!bxr_pool_unread(p, b));
  BXR_ASSERT(p != d->current && bxr_pool_is_empty(p));
  if (d->spare == p) d->spare = NULL;
  bxr_list_move(d, p, BXR_LIST_IDLE, true);
  bxr_owners_publish(d, p, b);
  p->snapshot_cycle = 0;
  d->idle++;
  bxr_count(&d->count.pools_in_use, -1);
}

void bxr_idle_release_empty(bxr_domain *d)
{
  static int const with_room[] = { BXR_LIST_OLD_ROOMY, BXR_LIST_OLD_AVAIL, BXR_LIST_YOUNG_AVAIL };
  bxr_barrier b = bxr_domain_barrier(d);
  for (unsigned i = 0; i < sizeof with_room / sizeof *with_room; i++) {
    int list = with_room[i];
    bxr_pool *p = d->lists[list];
    if (p == NULL) continue;
    for (bool last = false; !last;) {
      bxr_pool *next = p->next;
      last = next == d->lists[list];
      if (p != d->spare && p != d->current) {
        bxr_pool_count(p);
        if (bxr_pool_is_empty(p) && !bxr_pool_unread(p, b)) bxr_idle_release(d, p, b);
      }
      p = next;
    }
  }
}

/* Returns n idle pools to the depot: those that have been idle for longest. */
static void return_idle_pools(bxr_domain *d, uint64_t n, bool all)
{
  bxr_pool *pools[BXR_MOST_RETURNED_AT_ONCE];
  if (n > 0) BXR_ASSERT_OWNER(d);
  while (n > 0 && d->idle > 0) {
    unsigned k = 0;
    for (; k < BXR_MOST_RETURNED_AT_ONCE && k < n && d->idle > 0; k++) {
      pools[k] = d->lists[BXR_LIST_IDLE]->prev;
      bxr_list_move(d, pools[k], BXR_LIST_NONE, false);
      d->idle--;
    }
    n -= k;
    bxr_count(&d->count.pools_purged, bxr_depot_return(pools, k, all));
  }
  if (d->idle_least > d->idle) d->idle_least = d->idle;
  if (d->surplus > d->idle) d->surplus = d->idle;
}

uint64_t bxr_idle_give(bxr_domain *d, uint64_t n, uint64_t keep)
{
  uint64_t before = d->idle, spared = before > keep ? before - keep : 0;
  return_idle_pools(d, n < spared ? n : spared, false);
  return before - d->idle;
}

void bxr_idle_trim(bxr_domain *d)
{
  uint64_t n = d->surplus < BXR_MOST_TRIMMED_AT_ONCE ? d->surplus : BXR_MOST_TRIMMED_AT_ONCE;
  if (n == 0) return;
  d->surplus -= n;
  return_idle_pools(d, n, true);
}

void bxr_idle_trim_all(bxr_domain *d)
{
  return_idle_pools(d, d->idle, true);
  bxr_depot_trim();
}

void bxr_idle_new_cycle(bxr_domain *d)
{
  BXR_ASSERT_OWNER(d);
  d->surplus = d->idle_least > 1 ? d->idle_least - 1 : 0;
  d->idle_least = d->idle;
  if (BXR_COMPACTION_IS_A_CYCLE) return_idle_pools(d, d->surplus, true);
}
