/* SPDX-License-Identifier: MIT */
/* The major heap. The texts of three functions are changed by shared_heap.edits.

   Stock   compaction empties some pools, large blocks stay where they are, and free memory is used again at once.
   Here    compaction empties all pools into new ones and moves all large blocks; what the heap gives up is inaccessible
           for a while, and free blocks lead to where nothing is (trap.h). */
#include "prelude.h"
#include "block.h"
#include "pool.h"
#include "trap.h"
#include "trap_old.h"

static void leave_pool(void *pool);
static void renew_pools(struct caml_heap_state *heap);
static void *take_large(size_t bytes);
static void leave_large(void *large);
static void move_large(struct caml_heap_state *heap);
static void leave_moved(void);
static void compacted_range(uintptr_t *from, uintptr_t *to);
#define oh_pool_free(pool) leave_pool(pool)
#define oh_pool_range(from, to) compacted_range(from, to)
#define oh_block_alloc(bytes) take_large(bytes)
#define oh_block_free(large) leave_large(large)

#include "../ocaml5/shared_heap.c"

#undef oh_pool_free
#undef oh_pool_range
#undef oh_block_alloc
#undef oh_block_free

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

/* --- large blocks ------------------------------------------------------------------------------------------------- */

/* The addresses between which all large blocks lie that ever were. */
static uintptr_t large_from = UINTPTR_MAX, large_to;

static void compacted_range(uintptr_t *from, uintptr_t *to)
{
  oh_pool_range(from, to);
  uintptr_t least = oh_load_relaxed(&large_from), most = oh_load_relaxed(&large_to);
  if (least > most) return;
  bool pools = *from < *to;
  *from = !pools || least < *from ? OH_ROUND_DOWN(least, OH_POOL) : *from;
  *to = !pools || most > *to ? OH_ROUND_UP(most, OH_POOL) : *to;
}

static void *take_large(size_t bytes)
{
  if (!oh_trap_on) return oh_block_alloc(bytes);
  void *large = oh_trap_old_alloc(bytes);
  if (large == NULL) return NULL;
  uintptr_t begin = (uintptr_t)large, end = begin + bytes;
  for (uintptr_t least = oh_load_relaxed(&large_from); begin < least && !oh_cas_seq_cst(&large_from, &least, begin);) {}
  for (uintptr_t most = oh_load_relaxed(&large_to); end > most && !oh_cas_seq_cst(&large_to, &most, end);) {}
  return large;
}

#define HEADER_WORD (LARGE_ALLOC_HEADER_SZ / sizeof(value))
static header_t *header_of(large_alloc *large) { return (header_t *)large + HEADER_WORD; }

static void leave_large(void *large)
{
  if (oh_trap_on) oh_trap_leave_large(large, Whsize_hp(header_of(large)), HEADER_WORD, false);
  else oh_block_free(large);
}

/* Those that the domain which compacts has moved. */
static _Thread_local large_alloc *moved;

/* Each has a copy in its place in the heap's list, and leads to it as blocks of emptied pools do. Without memory it
   stays. */
static void move_large(struct caml_heap_state *heap)
{
  for (large_alloc **link = &heap->unswept_large; *link != NULL; link = &(*link)->next) {
    large_alloc *old = *link;
    header_t *p = header_of(old), header = *p;
    if (!Has_status_hd(header, caml_global_heap_state.UNMARKED)) continue;
    large_alloc *copy = oh_trap_old_copy(old, LARGE_ALLOC_HEADER_SZ + Bhsize_hd(header));
    if (copy == NULL) continue;
    *link = copy;
    old->next = moved;
    moved = old;
    Field(Val_hp(p), 0) = Val_hp(header_of(copy));
    *p = With_status_hd(header, caml_global_heap_state.MARKED);
    uintptr_t first = OH_ROUND_DOWN((uintptr_t)p, OH_POOL), end = (uintptr_t)p + Bhsize_hd(header);
    for (uintptr_t piece = first; piece < end; piece += OH_POOL) set_emptied((void *)piece);
  }
}

static void leave_moved(void)
{
  while (moved != NULL) {
    large_alloc *old = moved;
    moved = old->next;
    oh_trap_leave_large(old, Whsize_hp(header_of(old)), HEADER_WORD, true);
  }
}
