/* SPDX-License-Identifier: MIT */
#include "block.h"
#include "arena.h"
#include "settings.h"
#include "space.h"
#include <errno.h>
#include <unistd.h>
#if defined __GLIBC__ && __has_include(<sys/single_threaded.h>) && !OH_DEBUG
#include <sys/single_threaded.h>
#define ALONE __libc_single_threaded
#else
#define ALONE false /* the C library does not tell, or assertions want the lock */
#endif

/* Arenas. A thread stays with the arena that it used last until it finds its lock taken, and then moves on to the next
   one. So the number of arenas in use follows contention, not the number of threads, and a program with one thread uses
   one. A block returns to the arena that it came from. */
#ifndef OH_ARENAS
#define OH_ARENAS 0 /* as many as processors */
#endif
#define ARENAS_MOST 8
static struct oh_arena_block *lists[ARENAS_MOST][OH_ARENA_CLASSES];
#define ARENA(i) { .lock = PTHREAD_MUTEX_INITIALIZER, .number = i, .list = lists[i] }
static struct oh_arena arenas[ARENAS_MOST] = {
  ARENA(0), ARENA(1), ARENA(2), ARENA(3), ARENA(4), ARENA(5), ARENA(6), ARENA(7)
};
static _Thread_local unsigned preferred __attribute__((tls_model("initial-exec")));

static void lock(struct oh_arena *a) { pthread_mutex_lock(&a->lock); }
static void unlock(struct oh_arena *a) { pthread_mutex_unlock(&a->lock); }

static unsigned arenas_wanted(void)
{
  static unsigned known;
  unsigned n = oh_load_relaxed(&known);
  if (n == 0) {
    long processors = OH_ARENAS != 0 ? OH_ARENAS : sysconf(_SC_NPROCESSORS_ONLN);
    n = processors < 1 ? 1 : processors > ARENAS_MOST ? ARENAS_MOST : (unsigned)processors;
    oh_store_relaxed(&known, n);
  }
  return n;
}

/* The only thread of a process takes no lock to allocate and to free: that is half of what these cost. Nothing in
   between can start another thread. Result: was it taken? */
static bool enter(struct oh_arena *a)
{
  if (ALONE) return false;
  lock(a);
  return true;
}

static void leave(struct oh_arena *a, bool entered)
{
  if (entered) unlock(a);
}

static struct oh_arena *enter_one(bool *entered)
{
  struct oh_arena *a = &arenas[preferred];
  *entered = !ALONE;
  if (ALONE || pthread_mutex_trylock(&a->lock) == 0) return a;
  preferred = (preferred + 1) % arenas_wanted();
  lock(&arenas[preferred]);
  return &arenas[preferred];
}

static struct oh_arena_block *block_of(void const *payload)
{
  return (struct oh_arena_block *)((uintptr_t)payload - OH_ARENA_PAYLOAD);
}

/* There is no memory: the arenas return what they keep to the space; if that does not help, any block of any arena will
   do. */
static struct oh_arena_block *take_after_trim(size_t size, struct oh_arena_run *run)
{
  for (int i = 0; i < ARENAS_MOST; i++) {
    lock(&arenas[i]);
    oh_arena_trim(&arenas[i]);
    unlock(&arenas[i]);
  }
  run->start = oh_space_alloc(OH_SPACE_BLOCKS, run->bytes, true, NULL);
  struct oh_arena_block *b = NULL;
  for (int i = 0; run->start == NULL && b == NULL && i < ARENAS_MOST; i++) {
    lock(&arenas[i]);
    b = oh_arena_alloc(&arenas[i], size);
    unlock(&arenas[i]);
  }
  return b;
}

/* A block in new pages. Any size takes this way: the rest of the last page of a big block serves other blocks, or is
   the beginning of the next block, since neighbouring extents are joined. When a big block is freed its pages leave the
   arena at once (oh_arena_free), so in effect the space manages big blocks, by best fit. */
static struct oh_arena_block *take_new(struct oh_arena *a, size_t size, size_t step)
{
  size_t need = (size + OH_ARENA_PAYLOAD + OH_PAGE - 1) & ~(OH_PAGE - 1);
  bool fresh = false;
  struct oh_arena_run run = { NULL, need < step ? step : need };
  run.start = oh_space_alloc(OH_SPACE_BLOCKS, run.bytes, true, &fresh);
  if (run.start == NULL) {
    run.bytes = need;
    fresh = false;
    struct oh_arena_block *b = take_after_trim(size, &run);
    if (run.start == NULL) return b;
  }
  if (!oh_arena_ensure_pages((uintptr_t)run.start, run.bytes)) {
    oh_space_free(OH_SPACE_BLOCKS, run.start, run.bytes);
    return NULL;
  }
  lock(a);
  struct oh_arena_block *b =
    oh_arena_extend(a, run, fresh && oh_settings.thp[OH_SPACE_BLOCKS] == OH_SETTINGS_THP_OFF, size);
  unlock(a);
  return b;
}

/* The block may be in memory that was purged. */
static void fill(struct oh_arena_block const *b)
{
  struct oh_arena_run pages = oh_arena_filled(b, oh_arena_head_size(oh_arena_head(b)));
  if (pages.bytes != 0) oh_space_unite(OH_SPACE_BLOCKS, pages.start, pages.bytes);
}

void *oh_block_alloc(size_t bytes)
{
  struct oh_arena_block *b = NULL;
  if (bytes < OH_ARENA_LIMIT) {
    size_t size = oh_arena_size_for(bytes);
    bool entered;
    struct oh_arena *a = enter_one(&entered);
    b = oh_arena_alloc(a, size);
    size_t step = b == NULL ? oh_arena_step(a) : 0;
    leave(a, entered);
    if (b == NULL) b = take_new(a, size, step);
    else if (oh_space_split(OH_SPACE_BLOCKS) != 0) fill(b);
  }
  if (b == NULL) {
    errno = ENOMEM;
    return NULL;
  }
  return (char *)b + OH_ARENA_PAYLOAD;
}

void oh_block_free(void *block)
{
  if (block == NULL) return;
  struct oh_arena_block *b = block_of(block);
  oh_arena_check_block(b);
  struct oh_arena *a = &arenas[oh_arena_head(b) >> OH_ARENA_NUMBER_SHIFT];
  bool entered = enter(a);
  struct oh_arena_run run = oh_arena_free(a, b);
  leave(a, entered);
  if (run.bytes != 0) oh_space_free(OH_SPACE_BLOCKS, run.start, run.bytes);
}

size_t oh_block_size(void const *block)
{
  oh_arena_check_block(block_of(block));
  return oh_arena_head_size(oh_arena_head(block_of(block))) - 8;
}

size_t oh_block_trim(void)
{
  size_t bytes = 0;
  for (int i = 0; i < ARENAS_MOST; i++) {
    lock(&arenas[i]);
    bytes += oh_arena_trim(&arenas[i]);
    unlock(&arenas[i]);
  }
  return bytes + oh_space_trim(OH_SPACE_BLOCKS);
}

#define PURGE_MOST ((size_t)8 << 20)

size_t oh_block_old; /* bytes that are to be purged still, more or less */

/* In every other cycle free blocks become old; after the next one, those that are still free and beyond the space's
   allowance are purged. So they were free for a whole cycle: a program that replaces blocks takes most of them again
   within one. */
void oh_block_age(void)
{
  if (OH_SBRK) return (void)oh_space_age(OH_SPACE_BLOCKS); /* such parts cannot be given back */
  static unsigned cycles;
  bool mark = oh_fetch_add_relaxed(&cycles, 1) % 2 == 0;
  size_t old = 0, allowance = oh_space_age(OH_SPACE_BLOCKS);
  for (unsigned i = 0; i < arenas_wanted(); i++) {
    bool entered = enter(&arenas[i]);
    if (mark) oh_arena_age(&arenas[i]);
    old += arenas[i].old;
    leave(&arenas[i], entered);
  }
  oh_store_relaxed(&oh_block_old, mark || old < allowance ? 0 : old - allowance);
}

static size_t purge_one(struct oh_arena *a)
{
  struct oh_arena_run in, out;
  lock(a);
  struct oh_arena_block *b = oh_arena_hold(a, &in);
  unlock(a);
  if (b == NULL) return 0;
  oh_space_purge(OH_SPACE_BLOCKS, in.start, in.bytes);
  lock(a);
  out = oh_arena_release(a, b, true);
  unlock(a);
  if (out.bytes != 0) oh_space_free(OH_SPACE_BLOCKS, out.start, out.bytes);
  return in.bytes;
}

/* Two at a time may purge a little more than they should. */
void oh_block_purge_old(void)
{
  size_t left = oh_load_relaxed(&oh_block_old), most = left < PURGE_MOST ? left : PURGE_MOST, done = 0;
  for (int i = 0; i < ARENAS_MOST && done < most;) {
    size_t bytes = purge_one(&arenas[i]);
    done += bytes;
    if (bytes == 0) i++;
  }
  oh_store_relaxed(&oh_block_old, done < most || left < done ? 0 : left - done);
}

void oh_block_count(struct oh_block_counters *result)
{
  *result = (struct oh_block_counters){ 0 };
  for (int i = 0; i < ARENAS_MOST; i++) {
    struct oh_arena *a = &arenas[i];
    lock(a);
    result->blocks += a->blocks;
    result->bytes += a->bytes;
    result->extents += a->extents;
    result->resident_free += (a->pages << OH_PAGE_LOG) - OH_ARENA_PAYLOAD * a->extents - a->bytes - a->purged;
    unlock(a);
  }
}

void oh_block_validate(void)
{
  for (int i = 0; i < ARENAS_MOST; i++) {
    lock(&arenas[i]);
    oh_arena_check(&arenas[i]);
    unlock(&arenas[i]);
  }
}

void oh_block_lock(void)
{
  for (int i = 0; i < ARENAS_MOST; i++) lock(&arenas[i]);
}

void oh_block_unlock(void)
{
  for (int i = ARENAS_MOST; i-- > 0;) unlock(&arenas[i]);
}
