/* SPDX-License-Identifier: MIT */
/* Small and large blocks of the major heap, compaction, verification.

   Stock   maps each pool by itself and takes large blocks from malloc.
   Here    pools come from pool.h and large blocks from block.h, in large pages.
   Stock   compaction rewrites, and verification follows, every word with a clear low bit.
   Here    only pointers to the major heap.
   Stock   compaction empties the last pools of each list.
   Here    the lists are put in order before (below), so that whole large pages become free, and free memory
           is purged afterwards. A part of them may be compacted only (pace.h).
   Stock   compaction reads the header of each block that a word points to.
   Here    only of blocks that lay in pools which it has emptied.
   Stock   empty pools stay on a list until a compaction.
   Here    they go back (pool.h), unless memory=stock.
   Stock   both visit the global roots.
   Here    and the slots of tracked regions (region.h).
   Also    pools go to the helper to be swept, and come back (sweep_queue.h). When the runtime shuts down, it ends
           first.
   OCaml 5.1 keeps free pools in a list of its own, and maps several at a time (shared_heap.edits: one). */
#include "prelude.h"
#include "clock.h"
#include <caml/addrmap.h>
#include <caml/custom.h>
#include <caml/roots.h>
#include <caml/version.h>
#include "block.h"
#include "cycle.h"
#include "limit.h"
#include "helper.h"
#include "reclaim.h"
#include "pool.h"
#include "settings.h"
#include "sweeping.h"
#include "tracked.h"

/* Of the C library, not of the heap. */
static void forget_bits(uint64_t *bits) { free(bits); }

#define caml_mem_map(bytes, ...) ((void)(bytes), oh_pool_alloc())
#define caml_mem_unmap(pool, bytes) oh_pool_free(pool)
#define malloc oh_block_alloc
#define free oh_block_free

#undef Is_block
#define Is_block(v) (((v) & 1) == 0 && oh_table_kind((uintptr_t)(v)) == OH_KIND_MAJOR)

#define caml_scan_global_roots(f, data) \
  (caml_scan_global_roots(f, data), oh_track_each(&oh_tracked_visit, &(struct oh_tracked_visit){ f, data }))

/* A pool became empty. True: it is the runtime's no longer. */
static bool give_back(struct caml_heap_state *heap, void *pool)
{
  oh_cycle_note_free(Caml_state, heap); /* without this pool, which the heap does not count any more */
  if (!oh_settings.reclaim) return false;
  oh_pool_free(pool);
  return true;
}

/* Is this garbage that still has to be finalised, and may not be by this thread? */
static bool waits(header_t const *p, header_t hd)
{
  return oh_cycle_borrowed() && Tag_hd(hd) == Custom_tag && Custom_ops_val(Val_hp(p))->finalize != NULL;
}

/* It becomes a block that nothing leads to, with a header as if it had lived when the cycle began: the next cycle finds
   it again. */
static bool keep_waiting(header_t *p, header_t hd)
{
  if (!waits(p, hd)) return false;
  atomic_store_explicit((_Atomic(header_t) *)p, With_status_hd(hd, caml_global_heap_state.UNMARKED),
                        memory_order_relaxed);
  return true;
}

static bool is_swept(header_t *p, header_t *hd)
{
  if (!Has_status_hd(*hd, caml_global_heap_state.GARBAGE)) return false;
  if (!keep_waiting(p, *hd)) return true;
  *hd = *p;
  return false;
}

#if OCAML_VERSION >= 50200 /* before, there is no compaction */
static bool is_kept(header_t *p, header_t hd)
{
  return Has_status_hd(hd, caml_global_heap_state.UNMARKED)
         || (Has_status_hd(hd, caml_global_heap_state.GARBAGE) && keep_waiting(p, hd));
}

/* Garbage in a pool that is emptied: a block with room for `room` words. OCaml counts it out from 5.4 on. */
#if OCAML_VERSION < 50400
#define forget_emptied(heap, hd, room) \
  ((heap)->stats.pool_live_blocks--, (heap)->stats.pool_live_words -= Whsize_hd(hd), \
   (heap)->stats.pool_frag_words -= (room) - Whsize_hd(hd))
#else
#define forget_emptied(heap, hd, room) ((void)0)
#endif

/* The pools that a compaction has emptied: a bit for each pool between two addresses. Made by one domain before the
   others begin; the bits are set by all; read when all have done so. `none`: there is no memory for it, and every block
   of the heap may have moved. */
static struct { uintptr_t base, pools; uint64_t *bits; bool none; } emptied;
#define EMPTIED_MOST ((uintptr_t)1 << 25) /* pools: 1 TiB of addresses, 4 MiB of bits */

static void begin_emptied(void)
{
  uintptr_t end;
  oh_pool_range(&emptied.base, &end);
  emptied.pools = end > emptied.base ? (end - emptied.base) / OH_POOL : 0;
  if (emptied.pools > EMPTIED_MOST) emptied.pools = 0;
  emptied.bits = emptied.pools == 0 ? NULL : calloc(emptied.pools / 64 + 1, sizeof *emptied.bits);
  emptied.none = emptied.bits == NULL;
  if (emptied.none) emptied.pools = 0;
}

static void end_emptied(void)
{
  emptied.pools = 0;
  forget_bits(emptied.bits);
  emptied.bits = NULL;
}

static void set_emptied(void const *pool)
{
  uintptr_t i = ((uintptr_t)pool - emptied.base) / OH_POOL;
  if (i < emptied.pools) (void)oh_fetch_or_relaxed(&emptied.bits[i / 64], (uint64_t)1 << i % 64);
}

/* Of any word. */
static inline bool is_emptied(value v)
{
  uintptr_t i = ((uintptr_t)v - emptied.base) / OH_POOL;
  return i < emptied.pools ? emptied.bits[i / 64] >> i % 64 & 1 : emptied.none;
}
#endif

#if !OH_HELPER
static void *oh_sweeping_heap(size_t bytes);
#endif
static bool oh_sweeping_leaves(struct caml_heap_state *heap);
static void oh_sweeping_give_up(struct caml_heap_state *heap, struct pool *p, unsigned sz);
static void oh_sweeping_find(struct caml_heap_state *heap, unsigned sz);
static bool oh_sweeping_may_verify(struct caml_heap_state *heap);
static void oh_sweeping_drain(struct caml_heap_state *heap);

#define caml_compact_heap oh_shared_heap_stock_compact
#include <shared_heap.c>
#undef caml_compact_heap
#undef caml_mem_map
#undef caml_mem_unmap
#undef malloc
#undef free
#include "sweep_queue.h"

_Static_assert(Bsize_wsize(POOL_WSIZE) == OH_POOL, "pools of this version have another size");

#if OCAML_VERSION >= 50200 /* before, there is no compaction */
/* The order of pools before compaction.

   OCaml keeps as many pools from the front of a list as can hold the live blocks of all, and empties the others. It
   cannot empty full pools. So the pools that go to the front are those whose large page has to stay anyway, because of
   the full pools on it; within the same number of those, pools are in the order of addresses. */

/* Is `a` to be kept rather than `b`? */
static int is_kept_rather(pool *a, pool *b)
{
  unsigned x = oh_pool_pins(a), y = oh_pool_pins(b);
  return x != y ? x > y : a < b;
}

static pool *merge_pools(pool *a, pool *b)
{
  pool *result = NULL, **end = &result;
  while (a && b) {
    pool **least = is_kept_rather(a, b) ? &a : &b;
    *end = *least;
    end = &(*least)->next;
    *least = *end;
  }
  *end = a ? a : b;
  return result;
}

static pool *sort_pools(pool *list)
{
  pool *sorted[64] = {NULL}; /* sorted[i]: none, or 2^i pools */
  while (list) {
    pool *run = list;
    list = run->next;
    run->next = NULL;
    int i = 0;
    for (; sorted[i]; i++) {
      run = merge_pools(sorted[i], run);
      sorted[i] = NULL;
    }
    sorted[i] = run;
  }
  pool *all = NULL;
  for (int i = 0; i < 64; i++) all = merge_pools(sorted[i], all);
  return all;
}

/* Not all pools with room are emptied if that would take too long: the others are put among the full ones, where they
   are read, and swept. */
static void set_aside(pool **list, pool **full, double part)
{
  uintnat all = 0;
  for (pool *p = *list; p; p = p->next) all++;
  uintnat some = (uintnat)((double)all * part) + 1;
  for (; *list && some != 0; some--) list = &(*list)->next;
  while (*list) {
    pool *p = *list;
    *list = p->next;
    p->next = *full;
    *full = p;
  }
}

static void order_pools(struct caml_heap_state *heap, double part)
{
  for (int size = 0; size < NUM_SIZECLASSES; size++)
    for (pool *p = heap->unswept_full_pools[size]; p; p = p->next) oh_pool_pin(p);
  for (int size = 0; size < NUM_SIZECLASSES; size++)
    heap->unswept_avail_pools[size] = sort_pools(heap->unswept_avail_pools[size]);
  for (int size = 0; size < NUM_SIZECLASSES && part < 1; size++)
    set_aside(&heap->unswept_avail_pools[size], &heap->unswept_full_pools[size], part);
}

void caml_compact_heap(caml_domain_state *domain, int participating, caml_domain_state **participants)
{
  double part = oh_load_relaxed(&oh_cycle_is_forced) ? 0 : oh_cycle_part;
  bool first = participants[0] == domain;
  uint64_t began = oh_clock_now();
  if (first) begin_emptied();
  order_pools(domain->shared_heap, part == 0 ? 1 : part);
  oh_shared_heap_stock_compact(domain, participating, participants);
  if (!first) return;
  end_emptied();
  if (part == 0) {
    oh_pool_trim(1);
    oh_block_trim();
    (void)oh_limit_trim_malloc(true);
  }
  else {
    oh_pool_unpin(); /* the reclaim thread gives the memory back */
    uint64_t now = oh_clock_now();
    oh_pace_compacted(now, now - began);
    if (oh_limit_bytes != 0) oh_limit_compacted(now, now - began);
  }
  oh_cycle_compacted();
}
#endif

void oh_shared_heap_survey(struct caml_heap_state *heap, struct oh_pace_heap *all)
{
  struct heap_stats const *s = &heap->stats;
  size_t free = oh_cycle_free(heap);
  all->live += Bsize_wsize(s->pool_live_words + s->large_words);
  all->free += free;
  if (!oh_settings.reclaim || free < OH_PACE_LEAST / 8) return; /* no one asks */
  for (int size = 0; size < NUM_SIZECLASSES; size++)
    for (pool *p = heap->avail_pools[size]; p; p = p->next) all->partial += OH_POOL;
}
