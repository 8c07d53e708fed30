/* SPDX-License-Identifier: MIT */
#include "scan.h"
#include "checked/validate.h"
#include "delete.h"
#include "drain.h"
#include "orphans.h"
#include "report.h"
#include "records.h"
#include "snapshot.h"

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

/* The next record, from d on, that has pools. */
static bxr_domain *used(bxr_domain *d)
{
  while (d != NULL && ((d->count.pools_in_use == 0 && d->idle == 0) || bxr_load_relaxed(&d->head.state) == BXR_NOBODY))
    d = d->also;
  return d;
}

#define EACH_RECORD(d, first) (bxr_domain *d = used(first); d != NULL; d = used(d->also))

/* The result is the domain's first record. The domain first adopts the pools of ended domains; and if all roots are to
   be visited, also what domains have offered. With `drop`, what was cleared is dropped (records.h). */
static bxr_domain *begin_scan(unsigned id, bool all, bool drop)
{
  bxr_domain *first = &bxr_domains[id];
  for (bxr_domain *d = first; d != NULL; d = d->also) bxr_remote_flush(d);
  if (bxr_orphans_exist(all) && !bxr_runtime_is_terminating()) bxr_orphans_adopt(bxr_domain_here(), all);
  for (bxr_domain *d = first->also; drop && d != NULL; d = d->also) bxr_record_catch_up(d);
  for EACH_RECORD(d, first) bxr_validate(d);
  return first;
}

/* Scans a young pool, which is old then. It leaves the lists meanwhile, so that nothing is created in it, and deletions
   from it are deferred. */
static void scan_young_pool(bxr_domain *d, bxr_pool *p, bxr_minor_range range, bxr_visitor const *visitor)
{
  bool avail = p->list == BXR_LIST_YOUNG_AVAIL;
  bxr_barrier b = bxr_domain_barrier(d);
  bxr_list_move(d, p, BXR_LIST_NONE, false);
  bxr_owners_publish(d, p, b);
  scan_young_slots(p->slots, p->head.active, range, visitor);
  bxr_count(&d->count.minor_slots, p->head.active);
  if (BXR_UNLIKELY(bxr_domain_has_cleared(d, p))) {
    bxr_list_move(d, p, BXR_LIST_CLEARED, false);
    return;
  }
  if (avail) bxr_list_sort(d, p);
  else bxr_list_move(d, p, BXR_LIST_OLD_FULL, false);
  if (bxr_pool_is_empty(p) && !bxr_pool_unread(p, b)) bxr_idle_release(d, p, b);
  else bxr_owners_publish(d, p, b);
}

/* The result is what is left of the budget. */
static int64_t scan_young_of(bxr_domain *d, bxr_minor_range range, bxr_visitor const *visitor, int64_t budget)
{
  budget = bxr_drain_pending(d, bxr_domain_barrier(d), budget);
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
  budget = bxr_drain_pending(d, bxr_domain_barrier(d), budget);
  bxr_cleared_release(d);
  bxr_idle_trim(d);
  d->refills_before = d->refills;
  d->refills = 0;
  return budget;
}

/* Visits all slots that point into a minor heap. Afterwards no slot does, and every pool is old. The visitor can run
   finalisers (promotion allocates, allocation sweeps), which can delete and create roots: deletions wait in the
   bitmaps, and a pool in which a root was created is young again, so the loop handles it. It also handles a record that
   was scanned before, or that is new. */
static void scan_all_young(unsigned id, bxr_visitor const *visitor)
{
  for (bxr_domain *d = &bxr_domains[id]; d != NULL; d = d->also) d->runtime_cycle = bxr_runtime_cycle();
  bxr_domain *first = begin_scan(id, false, true);
  if (used(first) == NULL) {
    bxr_record_retire_all(first);
    return;
  }
  bool marking_next = !BXR_WORLD_STOPS_FOR_ALL && bxr_runtime_may_start_marking();
  int64_t budget = marking_next ? 10 * BXR_DRAIN_BUDGET_IN_PAUSE : BXR_DRAIN_BUDGET_IN_PAUSE;
  bxr_minor_range range = bxr_runtime_minor_range();
  for (bool again = true, counted = false; again;) {
    again = false;
    for EACH_RECORD(d, first) {
      bool young = d->lists[BXR_LIST_YOUNG_AVAIL] != NULL || d->lists[BXR_LIST_YOUNG_FULL] != NULL;
      bxr_count(&first->count.minor_scans, young && !counted);
      counted |= young;
      budget = scan_young_of(d, range, visitor, budget);
    }
    for EACH_RECORD(d, first)
      again |= d->lists[BXR_LIST_YOUNG_AVAIL] != NULL || d->lists[BXR_LIST_YOUNG_FULL] != NULL;
  }
  if (!bxr_runtime_is_only_domain()) bxr_orphans_offer(first);
  for EACH_RECORD(d, first) bxr_validate(d);
  bxr_record_retire_all(first);
}

static void scan_young(unsigned id, bxr_visitor const *visitor)
{
  scan_all_young(id, visitor);
  bxr_report_in_scan();
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
  bxr_barrier const b = bxr_domain_barrier(d);
  d->scanning = true;
  for (int list = BXR_LIST_YOUNG_AVAIL; list < BXR_LISTS_OF_ROOTS; list++) {
    bxr_pool *p = d->lists[list];
    if (p != NULL) do {
      bxr_pool_close(p);
      __builtin_prefetch(p->next);
      uint32_t n = p->head.active;
      for (uint32_t i = 0; i < n; i++) {
        if (ahead && i + AHEAD < n) __builtin_prefetch((uintptr_t *)p->slots[i + AHEAD] - 1, 1);
        if ((p->slots[i] & 1) == 0) bxr_runtime_visit(&v, (value)p->slots[i], &p->slots[i]);
      }
      bxr_owners_publish(d, p, b);
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
  bxr_domain *first = begin_scan(id, true, !BOXROOT_CONSERVATIVE);
  for EACH_RECORD(d, first) {
    if (!BOXROOT_CONSERVATIVE) {
      (void)bxr_drain_pending(d, bxr_domain_barrier(d), BXR_DRAIN_ALL);
      bxr_idle_release_empty(d);
      bxr_idle_trim_all(d);
    }
    bxr_count(&d->count.other_scans, d == first);
    visit_pools(d, visitor);
  }
}

/* The last cycle is over: no marker reads any pool any more. */
static void next_cycle(bxr_domain *d)
{
  d->cycle = d->cycle + 1 == BXR_NO_CYCLE ? 1 : d->cycle + 1;
  d->runtime_cycle = bxr_runtime_cycle();
  d->marking = false;
  d->chain_end = NULL;
  d->chain_pools = d->pushed = 0;
  bxr_idle_new_cycle(d);
  bxr_idle_release_empty(d);
}

/* The chain of all pools of d. False if there are none. */
static bool give_to_marker(bxr_domain *d, bxr_visitor const *visitor)
{
  bxr_pool *first = NULL;
  uint64_t roots = 0;
  bxr_barrier b = bxr_domain_barrier(d);
  for (int list = BXR_LIST_YOUNG_AVAIL; list < BXR_LISTS_OF_ROOTS; list++)
    first = bxr_snapshot_add(d, b, list, first, &roots);
  bxr_store_relaxed(&d->count.roots_last_cycle, roots);
  if (first == NULL) return false;
  d->marking = true;
  bxr_runtime_visit(visitor, (value)first->slots, NULL);
  return true;
}

static void visit_at_once(bxr_domain *first, bxr_visitor const *visitor)
{
  if (used(first) != NULL) bxr_count(&first->count.other_scans, 1);
  for EACH_RECORD(d, first) {
    bxr_store_relaxed(&d->count.roots_last_cycle, d->count.pools_in_use * BXR_CAPACITY);
    visit_pools(d, visitor);
  }
}

/* Marking starts: gives the marker the chain of all pools, to be read in slices. Cost: a step per pool, not per root.
   The chain is kept as it is until the marker has finished (bxr_pool_unread). Pending deletions are carried
   out first, but not where other domains may run already (OCaml 5.5): what such a domain read from a root, and deleted,
   may be the only other pointer to its value, and the collector has looked there before. They wait for the marker. */
static void start_cycle(unsigned id, bxr_visitor const *visitor)
{
  bxr_domain *first = begin_scan(id, true, !BOXROOT_CONSERVATIVE && BXR_WORLD_STOPS_FOR_ALL);
  bool any = used(first) != NULL, handed = false;
  int64_t budget = 10 * BXR_DRAIN_BUDGET_IN_PAUSE;
  uint64_t pools = 0;
  for EACH_RECORD(d, first) {
    if (BXR_WORLD_STOPS_FOR_ALL) budget = bxr_drain_pending(d, bxr_domain_barrier(d), budget);
    next_cycle(d);
    /* Young pools can exist here: a finaliser may have created a root since the minor collection. They stay young. */
    if (d->current != NULL) {
      d->spare = NULL;
      bxr_domain_set_current(d, NULL);
    }
    pools += d->count.pools_in_use;
  }
  if (any) bxr_orphans_new_cycle();
  if (pools <= MOST_POOLS_VISITED_AT_ONCE) visit_at_once(first, visitor);
  else
    for EACH_RECORD(d, first) handed |= give_to_marker(d, visitor);
  bxr_count(&first->count.major_starts, handed);
  if (any) bxr_orphans_offer(first);
  for EACH_RECORD(d, first) bxr_validate(d);
}

/* The same without the marker's help: all roots at once. */
static void start_cycle_stopped(unsigned id, bxr_visitor const *visitor)
{
  bxr_domain *first = begin_scan(id, true, !BOXROOT_CONSERVATIVE && BXR_WORLD_STOPS_FOR_ALL);
  if (used(first) == NULL) return;
  /* see scan_all and start_cycle */
  bool drain = !BOXROOT_CONSERVATIVE && BXR_WORLD_STOPS_FOR_ALL;
  for EACH_RECORD(d, first)
    if (drain) (void)bxr_drain_pending(d, bxr_domain_barrier(d), BXR_DRAIN_ALL);
  visit_at_once(first, visitor);
  for EACH_RECORD(d, first) next_cycle(d);
  bxr_orphans_new_cycle();
  bxr_orphans_offer(first);
}

/* The pools of the last domain stay with it: its last collections scan them as ever. */
static void end_domain(void)
{
  bxr_domain *first = &bxr_domains[bxr_runtime_domain()];
  bool only = bxr_runtime_is_only_domain();
  for (bxr_domain *d = first->also, *next; d != NULL; d = next) {
    next = d->also; /* d is not the domain's any more */
    bxr_record_catch_up(d);
    if (only) bxr_domain_retire(d, bxr_domain_barrier(d));
    else bxr_orphans_add_domain(d);
  }
  if (!only) {
    first->also = NULL;
    first->storages = 0;
    bxr_orphans_add_domain(first);
  } else if (bxr_load_relaxed(&first->head.state) != BXR_NOBODY) bxr_domain_retire(first, bxr_domain_barrier(first));
}

static void advance_marking(unsigned id, double share, uint64_t pushes, bool drained)
{
  BXR_ASSERT(id == bxr_runtime_domain());
  uint64_t pools = 0, pushed = 0;
  for (bxr_domain *d = &bxr_domains[id]; d != NULL; d = d->also) {
    if (drained) d->pushed = 0;
    pools += d->chain_pools;
    pushed += d->pushed;
  }
  pools = (uint64_t)(share * (double)pools) + 1;
  for (bxr_domain *d = &bxr_domains[id]; d != NULL && pools > 0 && pushed < pushes; d = d->also)
    bxr_snapshot_advance(d, &pools, &pushed, pushes);
}

BXR_INTERNAL_DATA_HERE bxr_callbacks const bxr_scan_callbacks = {
  .scan_young = scan_young,
  .start_cycle = BOXROOT_STW_SCAN ? start_cycle_stopped : start_cycle,
  .scan_all = scan_all,
  .end_domain = end_domain,
  .advance_marking = advance_marking,
};
