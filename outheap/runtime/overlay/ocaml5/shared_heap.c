/* SPDX-License-Identifier: MIT */
/* Small and large blocks of the major heap, compaction, verification.

   Stock   maps each pool by itself and takes large blocks from malloc.
   Here    pools come from pool.h and large blocks from block.h, in large pages.
   Stock   compaction rewrites, and verification follows, every word with a clear low bit.
   Here    only pointers to the major heap.
   Stock   compaction empties the last pools of each list.
   Here    the lists are put in order before (below), so that whole large pages become free, and free memory
           is purged afterwards.
   Stock   both visit the global roots.
   Here    and the slots of tracked regions (region.h).
   Also    pools go to the helper to be swept, and come back (sweep_queue.h). When the runtime shuts down, it ends
           first.
   OCaml 5.1 keeps free pools in a list of its own, and maps several at a time (shared_heap.edits: one). */
#include "prelude.h"
#include <caml/addrmap.h>
#include <caml/roots.h>
#include <caml/version.h>
#include "block.h"
#include "helper.h"
#include "pool.h"
#include "sweeping.h"
#include "tracked.h"

#define caml_mem_map(bytes, ...) ((void)(bytes), oh_pool_alloc())
#define caml_mem_unmap(pool, bytes) oh_pool_free(pool)
#define malloc oh_block_alloc
#define free oh_block_free

#undef Is_block
#define Is_block(v) (((v) & 1) == 0 && oh_table_kind((uintptr_t)(v)) == OH_KIND_MAJOR)

#define caml_scan_global_roots(f, data) \
  (caml_scan_global_roots(f, data), oh_track_each(&oh_tracked_visit, &(struct oh_tracked_visit){ f, data }))

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

static void order_pools(struct caml_heap_state *heap)
{
  for (int size = 0; size < NUM_SIZECLASSES; size++)
    for (pool *p = heap->unswept_full_pools[size]; p; p = p->next) oh_pool_pin(p);
  for (int size = 0; size < NUM_SIZECLASSES; size++)
    heap->unswept_avail_pools[size] = sort_pools(heap->unswept_avail_pools[size]);
}

void caml_compact_heap(caml_domain_state *domain, int participating, caml_domain_state **participants)
{
  order_pools(domain->shared_heap);
  oh_shared_heap_stock_compact(domain, participating, participants);
  if (participants[0] == domain) {
    oh_pool_trim(1);
    oh_block_trim();
  }
}
#endif
