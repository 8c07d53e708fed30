/* SPDX-License-Identifier: MIT */
#include "scan.h"
#include "barrier.h"
#include "chain.h"
#include "fold.h"
#include "idle.h"
#include "orphans.h"
#include "place.h"
#include "remote.h"
#include "shelf.h"
#include "supply.h"
#include "validate.h"
#include "young.h"

/* The record to scan, or NULL when the domain has no pools. Roots of ended domains are adopted first; to visit all
   roots, also what domains have offered. */
static bxr_domain *begin_scan(unsigned id, bool all)
{
  bxr_domain *d = &bxr_domains[id];
  bxr_remote_flush(d);
  if (bxr_orphans_exist(all) && !bxr_runtime_is_terminating()) {
    d = bxr_domain_here();
    bxr_orphans_adopt(d, all);
  }
  if ((d->count.pools_in_use == 0 && d->idle == 0) || bxr_load_relaxed(&d->head.state) == BXR_NOBODY) return NULL;
  bxr_validate(d);
  return d;
}

/* The pool leaves the lists, so that nothing is created in it, and deletions from it are deferred. */
static void scan_young_pool(bxr_domain *d, bxr_pool *p, bxr_minor_range range, bxr_visitor const *visitor)
{
  bool avail = p->place == BXR_PLACE_YOUNG_AVAIL;
  bxr_place_move(d, p, BXR_PLACE_NONE, false);
  bxr_place_publish(d, p);
  bxr_young_scan(p->slots, p->head.active, range, visitor);
  bxr_count(&d->count.minor_slots, p->head.active);
  if (avail) bxr_place_sort(d, p);
  else bxr_place_move(d, p, BXR_PLACE_OLD_FULL, false);
  if (bxr_pool_is_empty(p) && !bxr_barrier_awaits_marker(d, p)) bxr_idle_release(d, p);
  else bxr_place_publish(d, p);
}

/* Visits all slots that point into a minor heap. Afterwards no slot does, and every pool is old. The visitor can run
   finalisers (promotion allocates, allocation sweeps), which can delete and create roots: deletions wait in the
   bitmaps, and a pool in which a root was created is young again, so the loop handles it. */
static void scan_minor(unsigned id, bxr_visitor const *visitor)
{
  bxr_domains[id].runtime_cycle = bxr_runtime_cycle();
  bxr_domain *d = begin_scan(id, false);
  if (d == NULL) return;
  bool marking_next = !BXR_WORLD_STOPS_FOR_ALL && bxr_runtime_may_start_marking();
  int64_t budget = bxr_fold_pending(d, marking_next ? 10 * BXR_FOLD_IN_PAUSE : BXR_FOLD_IN_PAUSE);
  bxr_minor_range range = bxr_runtime_minor_range();
  bxr_count(&d->count.minor_scans, d->list[BXR_PLACE_YOUNG_AVAIL] != NULL || d->list[BXR_PLACE_YOUNG_FULL] != NULL);
  d->scanning = true;
  for (;;) {
    bxr_pool *p = d->list[BXR_PLACE_YOUNG_FULL];
    if (p == NULL) p = d->list[BXR_PLACE_YOUNG_AVAIL];
    if (p == NULL) break;
    bool current = p == d->current;
    if (current) bxr_domain_set_current(d, NULL);
    scan_young_pool(d, p, range, visitor);
    if (current) d->spare = p;
  }
  d->scanning = false;
  (void)bxr_fold_pending(d, budget);
  bxr_idle_trim(d);
  d->served_before = d->served;
  d->served = 0;
  if (!bxr_runtime_is_only_domain()) bxr_orphans_offer(d);
  bxr_validate(d);
}

/* A domain with no more pools than this has its roots visited at the start of a cycle: it is cheaper than the marker's
   prefetching when the data is in the cache, the pause is short even if it is not, and no deletion barrier is
   needed. */
#define VISITED_AT_ONCE 2

/* Visitors look at the block's header first. Prefetching it pays when the data is not in the cache, that is, not for a
   few pools. */
static void visit_pools(bxr_domain *d, bxr_visitor const *visitor)
{
  enum { AHEAD = 8 };
  bxr_visitor const v = *visitor;
  bool ahead = d->count.pools_in_use > VISITED_AT_ONCE;
  d->scanning = true;
  for (int place = BXR_PLACE_YOUNG_AVAIL; place < BXR_PLACES; place++) {
    bxr_pool *p = d->list[place];
    if (p != NULL) do {
      bxr_pool_close(p);
      __builtin_prefetch(p->next);
      uint32_t n = p->head.active;
      for (uint32_t i = 0; i < n; i++) {
        if (ahead && i + AHEAD < n) __builtin_prefetch((uintptr_t *)p->slots[i + AHEAD] - 1, 1);
        if ((p->slots[i] & 1) == 0) bxr_runtime_visit(&v, (value)p->slots[i], &p->slots[i]);
      }
      bxr_place_publish(d, p);
      p = p->next;
    } while (p != d->list[place]);
  }
  d->scanning = false;
}

/* Visits all slots, young or old, to verify or move what they hold; on OCaml 5 that is between two cycles
   (bxr_runtime_cycle has changed, cycle_start is still to come). Deletions that are pending are carried out before, not
   after: between the visits of a compaction the slots of OCaml 4.14's collector hold links of its own. Memory that
   holds no root is purged: a compaction asks for that. With a runtime that is not known deletions are left for the next
   minor scan: the world may not be stopped for all (docs/versions.md), and a domain that read a root, and deleted it,
   may hold the only other pointer to its value where the collector has looked already. */
static void scan_all(unsigned id, bxr_visitor const *visitor)
{
  bxr_domain *d = begin_scan(id, true);
  if (d == NULL) return;
  if (!BOXROOT_CONSERVATIVE) {
    (void)bxr_fold_pending(d, BXR_FOLD_ALL);
    bxr_idle_release_empty(d);
    bxr_idle_trim_all(d);
  }
  bxr_count(&d->count.other_scans, 1);
  visit_pools(d, visitor);
}

/* The last cycle is over: no marker reads any pool any more. */
static void next_cycle(bxr_domain *d)
{
  d->cycle++;
  if (d->cycle == 0) d->cycle = 1;
  d->runtime_cycle = bxr_runtime_cycle();
  d->marking = false;
  d->chain_end = NULL;
  d->chain_pools = d->pushed = 0;
  bxr_shelf_new_cycle();
  bxr_idle_new_cycle(d);
  bxr_idle_release_empty(d);
}

/* Puts the pools of a list in front of those of the chain. On OCaml 5.5 there can be a pool among them that is in the
   chain of a domain whose marking started before this one's, and which has ended since. */
static void add_to_snapshot(bxr_domain *d, int place, bxr_pool **first, uint64_t *roots)
{
  bxr_pool *p = d->list[place];
  if (p != NULL) do {
    if (!bxr_barrier_awaits_marker(d, p)) {
      bxr_chain_add(d, p, *first);
      *first = p;
      d->chain_pools++;
      *roots += p->exact ? BXR_CAPACITY - p->head.freed : BXR_CAPACITY;
    }
    p = p->next;
    __builtin_prefetch(p->next);
  } while (p != d->list[place]);
}

/* Marking starts: gives the marker the chain of all pools, to be read in slices. Cost: a step per pool, not per root.
   The chain is kept as it is until the marker has finished (bxr_barrier_awaits_marker). Pending deletions are carried
   out first, where no domain runs again before all have come here; since OCaml 5.5 a domain may, and by a deletion
   have the only other pointer to a value where the collector has looked already: then they wait for the marker. */
static void cycle_start(unsigned id, bxr_visitor const *visitor)
{
  bxr_domain *d = begin_scan(id, true);
  if (d == NULL) return;
  if (BXR_WORLD_STOPS_FOR_ALL) (void)bxr_fold_pending(d, 10 * BXR_FOLD_IN_PAUSE);
  next_cycle(d);
  /* Young pools can exist here: a finaliser may have created a root since the minor collection. They stay young. */
  if (d->current != NULL) {
    d->spare = NULL;
    bxr_domain_set_current(d, NULL);
  }
  if (d->count.pools_in_use <= VISITED_AT_ONCE) {
    bxr_count(&d->count.other_scans, 1);
    visit_pools(d, visitor);
    bxr_store_relaxed(&d->count.roots_last_cycle, d->count.pools_in_use * BXR_CAPACITY);
    bxr_orphans_offer(d);
    return;
  }
  bxr_pool *first = NULL;
  uint64_t roots = 0;
  for (int place = BXR_PLACE_YOUNG_AVAIL; place < BXR_PLACES; place++) add_to_snapshot(d, place, &first, &roots);
  bxr_store_relaxed(&d->count.roots_last_cycle, roots);
  if (first != NULL) {
    d->marking = true;
    bxr_count(&d->count.major_starts, 1);
    bxr_runtime_visit(visitor, (value)first->slots, NULL);
  }
  bxr_orphans_offer(d);
  bxr_validate(d);
}

/* The same without the marker's help: all roots at once. */
static void cycle_start_stopped(unsigned id, bxr_visitor const *visitor)
{
  bxr_domain *d = begin_scan(id, true);
  if (d == NULL) return;
  if (!BOXROOT_CONSERVATIVE && BXR_WORLD_STOPS_FOR_ALL) (void)bxr_fold_pending(d, BXR_FOLD_ALL); /* see scan_all */
  bxr_count(&d->count.other_scans, 1);
  bxr_store_relaxed(&d->count.roots_last_cycle, d->count.pools_in_use * BXR_CAPACITY);
  visit_pools(d, visitor);
  next_cycle(d);
  bxr_orphans_offer(d);
}

/* The pools of the last domain stay with it: its last collections scan them as ever. */
static void end_domain(unsigned id)
{
  bxr_domain *d = &bxr_domains[id];
  if (!bxr_runtime_is_only_domain()) bxr_orphans_add_domain(d);
  else if (bxr_load_relaxed(&d->head.state) != BXR_NOBODY) bxr_supply_retire(d);
}

/* The library does a share of the marker's work: it shortens the chain. */
static void advance_marking(unsigned id, double share, uint64_t pushes, bool drained)
{
  bxr_domain *d = &bxr_domains[id];
  if (d->chain_end == NULL || d->runtime_cycle != bxr_runtime_cycle()) return;
  if (d->marking && bxr_runtime_marking_done()) d->marking = false;
  if (!d->marking) return;
  if (drained) d->pushed = 0;
  if (d->pushed >= pushes) return;
  d->pushed += bxr_chain_shorten(d, (uint64_t)(share * (double)d->chain_pools) + 1, pushes - d->pushed);
}

BXR_INTERNAL_DATA_HERE bxr_callbacks const bxr_scan_callbacks = {
  .minor = scan_minor,
  .cycle_start = BOXROOT_STW_SCAN ? cycle_start_stopped : cycle_start,
  .all = scan_all,
  .domain_end = end_domain,
  .advance = advance_marking,
};
