/* SPDX-License-Identifier: MIT */
/* The major heap. The texts of two functions are changed by shared_heap.edits.

   Stock   compaction empties some pools, and free blocks and pools are used again at once.
   Here    compaction empties all pools into new ones; a pool that the heap gives up is inaccessible for a while, and
           free blocks lead to where nothing is (trap.h). */
#include "prelude.h"
#include "pool.h"
#include "trap.h"

static void leave_pool(void *pool);
static void renew_pools(struct caml_heap_state *heap);
#define oh_pool_free(pool) leave_pool(pool)

#include "../ocaml5/shared_heap.c"

#undef oh_pool_free

#ifndef POOL_BLOCK_FREE_HD /* before OCaml 5.5 */
#define POOL_BLOCK_FREE_HD(header) ((header) == 0)
#endif

static void leave_pool(void *left)
{
  pool *p = left;
  size_t first = (size_t)((value *)POOL_FIRST_BLOCK(p, p->sz) - (value *)p);
  if (oh_trap_on) oh_trap_leave_pool(p, wsize_sizeclass[p->sz], first);
  else oh_pool_free(p);
}

/* Before a compaction chooses the pools to empty. It keeps as many from the front of a list as have room for the live
   blocks of all: new, empty ones, in front of all others. Where there is no memory for them, old ones are kept. */
static void renew_pools(struct caml_heap_state *heap)
{
  size_t live = 0;
  for (sizeclass size = 1; size < NUM_SIZECLASSES; size++) {
    pool **end = &heap->unswept_full_pools[size];
    while (*end != NULL) end = &(*end)->next;
    *end = heap->unswept_avail_pools[size];
    pool *all = heap->unswept_full_pools[size];
    heap->unswept_full_pools[size] = NULL;
    mlsize_t words = wsize_sizeclass[size];
    size_t blocks = 0, each = 0;
    for (pool *p = all; p != NULL; p = p->next) {
      header_t *block = POOL_FIRST_BLOCK(p, size), *last = POOL_END(p);
      each = (size_t)(last - block) / words;
      for (; block + words <= last; block += words) {
        header_t header = *block;
        if (POOL_BLOCK_FREE_HD(header)) block += Wosize_hd(header) * words;
        else blocks += Has_status_hd(header, caml_global_heap_state.UNMARKED);
      }
    }
    live += blocks * words;
    for (size_t room = 0; room < blocks; room += each) {
      pool *fresh = pool_acquire(heap);
      if (fresh == NULL) break;
      heap->stats.pool_words += POOL_WSIZE;
      heap->stats.pool_frag_words += POOL_HEADER_WSIZE + wastage_sizeclass[size];
      pool_initialize(fresh, size, heap->owner);
      fresh->next = all;
      all = fresh;
    }
    heap->unswept_avail_pools[size] = all;
  }
  oh_trap_live_words(live + heap->stats.large_words);
}
