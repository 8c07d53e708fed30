/* SPDX-License-Identifier: MIT */
#include "block.h"
#include "arena.h"
#include "lock.h"
#include "settings.h"
#include <errno.h>
#include <unistd.h>

/* Arenas. A thread stays with the one it used last until it finds its lock taken, and then moves on to the next. So there are as many in use as threads get in each
   other's way, not one for each thread that ever was, and a program with one thread uses one. A block goes back to the arena that it came from. */
#ifndef OH_ARENAS
#define OH_ARENAS 0 /* as many as processors */
#endif
#define ARENAS 8
#define ARENA(i) { .lock = PTHREAD_MUTEX_INITIALIZER, .number = i }
static struct oh_arena arenas[ARENAS] = { ARENA(0), ARENA(1), ARENA(2), ARENA(3), ARENA(4), ARENA(5), ARENA(6), ARENA(7) };
static _Thread_local unsigned preferred __attribute__((tls_model("initial-exec")));

static void lock(struct oh_arena *a) { pthread_mutex_lock(&a->lock); }
static void unlock(struct oh_arena *a) { pthread_mutex_unlock(&a->lock); }

static unsigned arenas_wanted(void)
{
  static unsigned known;
  unsigned n = oh_load_relaxed(&known);
  if (n == 0) {
    long processors = OH_ARENAS != 0 ? OH_ARENAS : sysconf(_SC_NPROCESSORS_ONLN);
    n = processors < 1 ? 1 : processors > ARENAS ? ARENAS : (unsigned)processors;
    oh_store_relaxed(&known, n);
  }
  return n;
}

static struct oh_arena *lock_one(void)
{
  struct oh_arena *a = &arenas[preferred];
  if (pthread_mutex_trylock(&a->lock) == 0) return a;
  preferred = (preferred + 1) % arenas_wanted();
  lock(&arenas[preferred]);
  return &arenas[preferred];
}

static struct oh_block *block_of(void const *payload) { return (struct oh_block *)((uintptr_t)payload - OH_PAYLOAD); }

/* There is no memory: first what the arenas keep for themselves goes back to the space, then any block of any arena will do. */
static struct oh_block *take_in_need(size_t size, struct oh_run *run)
{
  for (int i = 0; i < ARENAS; i++) {
    lock(&arenas[i]);
    oh_arena_trim(&arenas[i]);
    unlock(&arenas[i]);
  }
  run->start = oh_pages_take(OH_SPACE_BLOCKS, run->bytes, true, NULL);
  struct oh_block *b = NULL;
  for (int i = 0; run->start == NULL && b == NULL && i < ARENAS; i++) {
    lock(&arenas[i]);
    b = oh_arena_take(&arenas[i], size);
    unlock(&arenas[i]);
  }
  return b;
}

/* A block out of new pages. Any size goes this way: what a block of many pages leaves of its last page serves others, or is the beginning of the next, since neighbouring
   extents are joined. Once it is free its pages leave the arena at once (oh_arena_give), so big blocks are in effect the space's, which knows best fit for them. */
static struct oh_block *take_new(struct oh_arena *a, size_t size, size_t step)
{
  size_t need = (size + OH_PAYLOAD + OH_PAGE - 1) & ~(OH_PAGE - 1);
  bool fresh = false;
  struct oh_run run = { NULL, need < step ? step : need };
  run.start = oh_pages_take(OH_SPACE_BLOCKS, run.bytes, true, &fresh);
  if (run.start == NULL) {
    run.bytes = need;
    fresh = false;
    struct oh_block *b = take_in_need(size, &run);
    if (run.start == NULL) return b;
  }
  if (!oh_map_make(&oh_owners, (uintptr_t)run.start, run.bytes, 1)) {
    oh_pages_give(OH_SPACE_BLOCKS, run.start, run.bytes);
    return NULL;
  }
  lock(a);
  struct oh_block *b = oh_arena_extend(a, run, fresh && oh_settings.thp[OH_SPACE_BLOCKS] == OH_THP_OFF, size);
  unlock(a);
  return b;
}

void *oh_block_take(size_t bytes)
{
  struct oh_block *b = NULL;
  if (bytes < OH_BLOCK_LIMIT) {
    size_t size = oh_size_for(bytes);
    struct oh_arena *a = lock_one();
    b = oh_arena_take(a, size);
    size_t step = b == NULL ? oh_arena_step(a) : 0;
    unlock(a);
    if (b == NULL) b = take_new(a, size, step);
  }
  if (b == NULL) {
    errno = ENOMEM;
    return NULL;
  }
  return (char *)b + OH_PAYLOAD;
}

void oh_block_give(void *block)
{
  if (block == NULL) return;
  struct oh_block *b = block_of(block);
  oh_block_check(b);
  struct oh_arena *a = &arenas[oh_block_head(b) >> OH_ARENA_SHIFT];
  lock(a);
  struct oh_run run = oh_arena_give(a, b);
  unlock(a);
  if (run.bytes != 0) oh_pages_give(OH_SPACE_BLOCKS, run.start, run.bytes);
}

size_t oh_block_size(void const *block)
{
  oh_block_check(block_of(block));
  return oh_head_size(oh_block_head(block_of(block))) - 8;
}

size_t oh_blocks_trim(void)
{
  size_t bytes = 0;
  for (int i = 0; i < ARENAS; i++) {
    lock(&arenas[i]);
    bytes += oh_arena_trim(&arenas[i]);
    unlock(&arenas[i]);
  }
  return bytes + oh_pages_trim(OH_SPACE_BLOCKS);
}

void oh_blocks_count(struct oh_block_counters *result)
{
  *result = (struct oh_block_counters){ 0 };
  for (int i = 0; i < ARENAS; i++) {
    struct oh_arena *a = &arenas[i];
    lock(a);
    result->blocks += a->blocks;
    result->bytes += a->bytes;
    result->extents += a->extents;
    result->resident_free += (a->pages << OH_PAGE_LOG) - OH_PAYLOAD * a->extents - a->bytes - a->empty;
    unlock(a);
  }
}

void oh_blocks_validate(void)
{
  for (int i = 0; i < ARENAS; i++) {
    lock(&arenas[i]);
    oh_arena_validate(&arenas[i]);
    unlock(&arenas[i]);
  }
}

void oh_blocks_lock(void)
{
  for (int i = 0; i < ARENAS; i++) lock(&arenas[i]);
}

void oh_blocks_unlock(void)
{
  for (int i = ARENAS; i-- > 0;) unlock(&arenas[i]);
}
