/* SPDX-License-Identifier: MIT */
#include "scan.h"
#include "checked/validate.h"
#include "orphans.h"
#include "remote.h"
#include "snapshot.h"
#include "supply.h"

/* --- the search for young values ---------------------------------------------------------------------------------- */

#if BOXROOT_CONSERVATIVE
static inline bool is_young(uintptr_t w, bxr_minor_range range) { return bxr_runtime_in_minor_range(range, w); }
#else
/* A word w holds a young block iff it is even and w - start < size, as numbers without sign. Minor heaps start at even
   addresses, so w is odd iff t = w - start is, and t | t << 63 is t with the top bit set when w is odd: one comparison
   of that number with the size says it all. AVX2 compares numbers with sign, so there 0 <= t | t << 63 < size takes a
   comparison and a look at the sign. */
static inline bool is_young(uintptr_t w, bxr_minor_range range)
{
  uintptr_t t = w - range.start;
  return (t | t << 63) < range.size;
}
#endif

static void scan_slots(uintptr_t *slots, uint32_t n, bxr_minor_range range, bxr_visitor const *visitor)
{
  for (uint32_t i = 0; i < n; i++)
    if (BXR_UNLIKELY(is_young(slots[i], range))) bxr_runtime_visit_young(visitor, (value)slots[i], &slots[i]);
}

#if defined(__x86_64__) && !BOXROOT_CONSERVATIVE
#include <immintrin.h>

__attribute__((target("avx2")))
static void scan_slots_avx2(uintptr_t *slots, uint32_t n, bxr_minor_range range, bxr_visitor const *visitor)
{
  __m256i start = _mm256_set1_epi64x((long long)range.start), size = _mm256_set1_epi64x((long long)range.size);
  uint32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256i a = _mm256_sub_epi64(_mm256_loadu_si256((__m256i const *)&slots[i]), start);
    __m256i b = _mm256_sub_epi64(_mm256_loadu_si256((__m256i const *)&slots[i + 4]), start);
    a = _mm256_or_si256(a, _mm256_slli_epi64(a, 63));
    b = _mm256_or_si256(b, _mm256_slli_epi64(b, 63));
    a = _mm256_andnot_si256(a, _mm256_cmpgt_epi64(size, a)); /* the top bit says: a < size and not a < 0 */
    b = _mm256_andnot_si256(b, _mm256_cmpgt_epi64(size, b));
    unsigned hits = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(a)) |
                    (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(b)) << 4;
    for (; hits != 0; hits &= hits - 1) {
      uintptr_t *slot = &slots[i + __builtin_ctz(hits)];
      bxr_runtime_visit_young(visitor, (value)*slot, slot);
    }
  }
  scan_slots(slots + i, n - i, range, visitor);
}

/* Visits each of the n slots that holds a young block. The visitor may change the slot that it is given.
   Cost: a test per slot, four at a time where AVX2 is there. */
static void scan_young_slots(uintptr_t *slots, uint32_t n, bxr_minor_range range, bxr_visitor const *visitor)
{
  if (__builtin_cpu_supports("avx2")) scan_slots_avx2(slots, n, range, visitor);
  else scan_slots(slots, n, range, visitor);
}
#else
static void scan_young_slots(uintptr_t *slots, uint32_t n, bxr_minor_range range, bxr_visitor const *visitor)
{
  scan_slots(slots, n, range, visitor);
}
#endif

/* --- what the collector asks for ---------------------------------------------------------------------------------- */

/* The result is the record to scan, or NULL when the domain has no pools. The domain first adopts the pools of ended
   domains; and if all roots are to be visited, also what domains have offered. */
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

/* Scans a young pool, which is old then. It leaves the lists meanwhile, so that nothing is created in it, and deletions
   from it are deferred. */
static void scan_young_pool(bxr_domain *d, bxr_pool *p, bxr_minor_range range, bxr_visitor const *visitor)
{
  bool avail = p->list == BXR_LIST_YOUNG_AVAIL;
  bxr_list_move(d, p, BXR_LIST_NONE, false);
  bxr_owners_publish(d, p);
  scan_young_slots(p->slots, p->head.active, range, visitor);
  bxr_count(&d->count.minor_slots, p->head.active);
  if (avail) bxr_list_sort(d, p);
  else bxr_list_move(d, p, BXR_LIST_OLD_FULL, false);
  if (bxr_pool_is_empty(p) && !bxr_barrier_awaits_marker(d, p)) bxr_idle_release(d, p);
  else bxr_owners_publish(d, p);
}

/* Visits all slots that point into a minor heap. Afterwards no slot does, and every pool is old. The visitor can run
   finalisers (promotion allocates, allocation sweeps), which can delete and create roots: deletions wait in the
   bitmaps, and a pool in which a root was created is young again, so the loop handles it. */
static void scan_young(unsigned id, bxr_visitor const *visitor)
{
  bxr_domains[id].runtime_cycle = bxr_runtime_cycle();
  bxr_domain *d = begin_scan(id, false);
  if (d == NULL) return;
  bool marking_next = !BXR_WORLD_STOPS_FOR_ALL && bxr_runtime_may_start_marking();
  int64_t budget = bxr_drain_pending(d, marking_next ? 10 * BXR_DRAIN_BUDGET_IN_PAUSE : BXR_DRAIN_BUDGET_IN_PAUSE);
  bxr_minor_range range = bxr_runtime_minor_range();
  bxr_count(&d->count.minor_scans, d->lists[BXR_LIST_YOUNG_AVAIL] != NULL || d->lists[BXR_LIST_YOUNG_FULL] != NULL);
  d->scanning = true;
  for (;;) {
    bxr_pool *p = d->lists[BXR_LIST_YOUNG_FULL];
    if (p == NULL) p = d->lists[BXR_LIST_YOUNG_AVAIL];
    if (p == NULL) break;
    bool current = p == d->current;
    if (current) bxr_domain_set_current(d, NULL);
    scan_young_pool(d, p, range, visitor);
    if (current) d->spare = p;
  }
  d->scanning = false;
  (void)bxr_drain_pending(d, budget);
  bxr_idle_trim(d);
  d->refills_before = d->refills;
  d->refills = 0;
  if (!bxr_runtime_is_only_domain()) bxr_orphans_offer(d);
  bxr_validate(d);
}

/* A domain with no more pools than this has its roots visited at the start of a cycle: that is cheaper than the
   marker's prefetching when the data is in the cache, the pause is short even if it is not, and no deletion barrier is
   needed. */
#define MOST_POOLS_VISITED_AT_ONCE 2

/* Visits all slots of all pools. Visitors look at the block's header first. Prefetching it pays when the data is not in
   the cache, that is, not for a few pools. */
static void visit_pools(bxr_domain *d, bxr_visitor const *visitor)
{
  enum { AHEAD = 8 };
  bxr_visitor const v = *visitor;
  bool ahead = d->count.pools_in_use > MOST_POOLS_VISITED_AT_ONCE;
  d->scanning = true;
  for (int list = BXR_LIST_YOUNG_AVAIL; list < BXR_LISTS; list++) {
    bxr_pool *p = d->lists[list];
    if (p != NULL) do {
      bxr_pool_close(p);
      __builtin_prefetch(p->next);
      uint32_t n = p->head.active;
      for (uint32_t i = 0; i < n; i++) {
        if (ahead && i + AHEAD < n) __builtin_prefetch((uintptr_t *)p->slots[i + AHEAD] - 1, 1);
        if ((p->slots[i] & 1) == 0) bxr_runtime_visit(&v, (value)p->slots[i], &p->slots[i]);
      }
      bxr_owners_publish(d, p);
      p = p->next;
    } while (p != d->lists[list]);
  }
  d->scanning = false;
}

/* Visits all slots, young or old, to verify or move what they hold; on OCaml 5 that is between two cycles
   (bxr_runtime_cycle has changed, start_cycle is still to come). Deletions that are pending are carried out before, not
   after: between the visits of a compaction the slots of OCaml 4.14's collector hold links of its own. Memory that
   holds no root is purged: a compaction asks for that. With a runtime that is not known deletions are left for the next
   minor scan: the world may not be stopped for all (docs/reference/versions.md), and a domain that read a root, and
   deleted it, may hold the only other pointer to its value where the collector has looked already. */
static void scan_all(unsigned id, bxr_visitor const *visitor)
{
  bxr_domain *d = begin_scan(id, true);
  if (d == NULL) return;
  if (!BOXROOT_CONSERVATIVE) {
    (void)bxr_drain_pending(d, BXR_DRAIN_ALL);
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
  bxr_orphans_new_cycle();
  bxr_idle_new_cycle(d);
  bxr_idle_release_empty(d);
}

/* Marking starts: gives the marker the chain of all pools, to be read in slices. Cost: a step per pool, not per root.
   The chain is kept as it is until the marker has finished (bxr_barrier_awaits_marker). Pending deletions are carried
   out first, but not where other domains may run already (OCaml 5.5): what such a domain read from a root, and deleted,
   may be the only other pointer to its value, and the collector has looked there before. They wait for the marker. */
static void start_cycle(unsigned id, bxr_visitor const *visitor)
{
  bxr_domain *d = begin_scan(id, true);
  if (d == NULL) return;
  if (BXR_WORLD_STOPS_FOR_ALL) (void)bxr_drain_pending(d, 10 * BXR_DRAIN_BUDGET_IN_PAUSE);
  next_cycle(d);
  /* Young pools can exist here: a finaliser may have created a root since the minor collection. They stay young. */
  if (d->current != NULL) {
    d->spare = NULL;
    bxr_domain_set_current(d, NULL);
  }
  if (d->count.pools_in_use <= MOST_POOLS_VISITED_AT_ONCE) {
    bxr_count(&d->count.other_scans, 1);
    visit_pools(d, visitor);
    bxr_store_relaxed(&d->count.roots_last_cycle, d->count.pools_in_use * BXR_CAPACITY);
    bxr_orphans_offer(d);
    return;
  }
  bxr_pool *first = NULL;
  uint64_t roots = 0;
  for (int list = BXR_LIST_YOUNG_AVAIL; list < BXR_LISTS; list++) first = bxr_snapshot_add(d, list, first, &roots);
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
static void start_cycle_stopped(unsigned id, bxr_visitor const *visitor)
{
  bxr_domain *d = begin_scan(id, true);
  if (d == NULL) return;
  /* see scan_all and start_cycle */
  if (!BOXROOT_CONSERVATIVE && BXR_WORLD_STOPS_FOR_ALL) (void)bxr_drain_pending(d, BXR_DRAIN_ALL);
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

static void advance_marking(unsigned id, double share, uint64_t pushes, bool drained)
{
  bxr_snapshot_advance(&bxr_domains[id], share, pushes, drained);
}

BXR_INTERNAL_DATA_HERE bxr_callbacks const bxr_scan_callbacks = {
  .scan_young = scan_young,
  .start_cycle = BOXROOT_STW_SCAN ? start_cycle_stopped : start_cycle,
  .scan_all = scan_all,
  .end_domain = end_domain,
  .advance_marking = advance_marking,
};
