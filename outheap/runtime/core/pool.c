/* SPDX-License-Identifier: MIT */
#include "pool.h"
#include "settings.h"
#include "space.h"
#include <errno.h>
#include <pthread.h>

#define PIECES OH_POOLS_PER_PAGE
#define ALL (~(uint64_t)0 >> (64 - PIECES))
/* Splitting a huge page that has fewer free pieces costs more TLB misses later than the memory is worth. */
#define SPLIT_FROM (PIECES / 16 + 1)

/* A large page that is cut into pieces. The lock protects everything; `used` is also read without it.
     used is a subset of touched; both are subsets of ALL;
     base != NULL  <=>  used != 0  <=>  the page is on the list buckets[number of pieces that are not in `used`];
     held is a subset of used; sum of popcount(used) over all pages = pools + sum of popcount(held);
     number of pages on the lists = pages;
     bit f - 1 of `vacant` is set  <=>  buckets[f] is not empty, for f = 1 … PIECES - 1. */
struct page {
  uint64_t used;    /* pieces that are in use */
  uint64_t touched; /* pieces that may be resident */
  uint64_t held;    /* pieces that a trim is purging: nobody else takes them meanwhile */
  bool split;       /* pieces were purged, and few have been taken since then */
  char *base;
  struct page *next, *prev;
  unsigned quiet; /* looks of the reclaim thread since a pool was taken or freed here */
  size_t pins;    /* without the lock: pools that stay where they are */
  size_t trimmed; /* the number of the last trim that came here */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static oh_pagemap records;
static struct page *buckets[PIECES + 1];
static uint64_t vacant;
static size_t pools, pages, trims;
static uintptr_t lowest = UINTPTR_MAX, highest; /* all pages that ever were lie between */
bool oh_pool_rising;

static unsigned popcount(uint64_t set) { return (unsigned)__builtin_popcountll(set); }
static uint64_t used_of(struct page const *p) { return oh_load_relaxed(&p->used); }
static struct page *page_of(void const *pool)
{
  return oh_pagemap_find(&records, (uintptr_t)pool, sizeof(struct page));
}
static uint64_t bit_of(void const *pool) { return (uint64_t)1 << ((uintptr_t)pool >> OH_POOL_LOG & (PIECES - 1)); }

static void link_page(struct page *p)
{
  OH_ASSERT_LOCKED(&mutex);
  unsigned f = PIECES - popcount(p->used);
  p->prev = NULL;
  p->next = buckets[f];
  if (p->next != NULL) p->next->prev = p;
  buckets[f] = p;
  if (f != 0) vacant |= (uint64_t)1 << (f - 1);
}

static void unlink_page(struct page *p)
{
  OH_ASSERT_LOCKED(&mutex);
  unsigned f = PIECES - popcount(p->used);
  if (p->next != NULL) p->next->prev = p->prev;
  if (p->prev != NULL) p->prev->next = p->next;
  else {
    buckets[f] = p->next;
    if (f != 0 && p->next == NULL) vacant &= ~((uint64_t)1 << (f - 1));
  }
}

/* A page that is on no list yet. Called without the lock. */
static struct page *obtain_page(void)
{
  bool fresh;
  char *base = oh_space_alloc(OH_SPACE_POOLS, OH_PAGE, true, &fresh);
  if (base == NULL) return NULL;
  if (!oh_pagemap_ensure(&records, (uintptr_t)base, OH_PAGE, sizeof(struct page))) {
    oh_space_free(OH_SPACE_POOLS, base, OH_PAGE);
    errno = ENOMEM;
    return NULL;
  }
  struct page *p = page_of(base);
  p->base = base;
  p->split = false;
  oh_store_relaxed(&p->pins, (size_t)0);
  /* The first touch of a huge page makes the whole of it resident. */
  p->touched = fresh && oh_settings.thp[OH_SPACE_POOLS] == OH_SETTINGS_THP_OFF ? 0 : ALL;
  return p;
}

void *oh_pool_alloc(void)
{
  struct page *p;
  pthread_mutex_lock(&mutex);
  if (vacant != 0) {
    p = buckets[__builtin_ctzll(vacant) + 1];
    unlink_page(p);
  }
  else {
    pthread_mutex_unlock(&mutex);
    p = obtain_page();
    if (p == NULL) return NULL;
    pthread_mutex_lock(&mutex);
    pages++;
    if ((uintptr_t)p->base < lowest) lowest = (uintptr_t)p->base;
    if ((uintptr_t)p->base + OH_PAGE > highest) highest = (uintptr_t)p->base + OH_PAGE;
  }
  p->quiet = 0;
  uint64_t unused = ~p->used & ALL;
  unsigned i = oh_pool_rising ? (unsigned)__builtin_ctzll(unused) : 63 - (unsigned)__builtin_clzll(unused);
  uint64_t bit = (uint64_t)1 << i;
  oh_store_relaxed(&p->used, p->used | bit);
  p->touched |= bit;
  pools++;
  char *base = p->base;
  bool filled = p->split && PIECES - popcount(p->used) < SPLIT_FROM;
  if (filled) p->split = false;
  link_page(p);
  pthread_mutex_unlock(&mutex);
  if (filled) oh_space_unite(OH_SPACE_POOLS, base, OH_PAGE); /* it stays used, by this pool */
  return base + ((size_t)i << OH_POOL_LOG);
}

void oh_pool_free(void *pool)
{
  struct page *p = page_of(pool);
  uint64_t bit = bit_of(pool);
#if OH_DEBUG
  if (p == NULL || ((uintptr_t)pool & (OH_POOL - 1)) != 0) oh_log_abort("not a pool: %p", pool);
#endif
  pthread_mutex_lock(&mutex);
#if OH_DEBUG
  if ((p->used & bit) == 0) oh_log_abort("pool given back that is not in use: %p", pool);
#endif
  unlink_page(p);
  p->quiet = 0;
  oh_store_relaxed(&p->used, p->used & ~bit);
  pools--;
  char *base = NULL;
  if (p->used != 0) link_page(p);
  else {
    base = p->base;
    p->base = NULL;
    pages--;
  }
  pthread_mutex_unlock(&mutex);
  if (base != NULL) oh_space_free(OH_SPACE_POOLS, base, OH_PAGE); /* which decides how much to keep */
}

unsigned oh_pool_page_used(void const *pool)
{
  struct page *p = page_of(pool);
  return p == NULL ? 0 : popcount(used_of(p));
}

void oh_pool_pin(void const *pool)
{
  struct page *p = page_of(pool);
  if (p != NULL) (void)oh_fetch_add_relaxed(&p->pins, 1);
}

unsigned oh_pool_pins(void const *pool)
{
  struct page *p = page_of(pool);
  return p == NULL ? 0 : (unsigned)oh_load_relaxed(&p->pins);
}

/* --- trim ------------------------------------------------------------------------------------------------------------
   */

#define BATCH_MOST 16 /* pages that are purged at a time */

/* Gives the memory of held pieces back, run by run, without the lock. Pieces smaller than the system's pages count when
   they fill one together. Result: bytes; the pieces that were purged are cleared in `*touched`. */
static size_t purge_held(struct page const *p, uint64_t *touched)
{
  uint64_t left = p->held;
  uintptr_t grain = oh_os_page_size() - 1;
  size_t bytes = 0;
  while (left != 0) {
    unsigned first = (unsigned)__builtin_ctzll(left);
    uint64_t after = ~left >> first;
    unsigned length = after == 0 ? 64 - first : (unsigned)__builtin_ctzll(after);
    uint64_t run = (~(uint64_t)0 >> (64 - length)) << first;
    uintptr_t start = ((uintptr_t)p->base + ((uintptr_t)first << OH_POOL_LOG) + grain) & ~grain;
    uintptr_t end = ((uintptr_t)p->base + ((uintptr_t)(first + length) << OH_POOL_LOG)) & ~grain;
    if (start < end) {
      oh_space_purge(OH_SPACE_POOLS, (void *)start, end - start);
      *touched &= ~run;
      bytes += end - start;
    }
    left &= ~run;
  }
  return bytes;
}

/* The held pieces are free again, and maybe the whole page: then it is on no list, and its address is the result. */
static char *release_held(struct page *p)
{
  unlink_page(p);
  oh_store_relaxed(&p->used, p->used & ~p->held);
  p->held = 0;
  if (p->used != 0) {
    link_page(p);
    return NULL;
  }
  char *base = p->base;
  p->base = NULL;
  pages--;
  return base;
}

/* Up to BATCH_MOST pages that this trim has not come to yet, and that have free pieces to purge; these are held. */
static size_t hold(size_t number, bool decay, struct page *batch[BATCH_MOST])
{
  OH_ASSERT_LOCKED(&mutex);
  unsigned least = oh_settings.thp[OH_SPACE_POOLS] == OH_SETTINGS_THP_OFF ? 1
                   : decay ? PIECES / 4 * 3 : SPLIT_FROM;
  size_t n = 0;
  for (unsigned f = least; f < PIECES; f++)
    for (struct page *p = buckets[f], *next; p != NULL && n < BATCH_MOST; p = next) {
      next = p->next;
      uint64_t free = p->touched & ~p->used;
      if (p->trimmed == number || p->held != 0 || (decay && p->quiet < 2)) continue;
      p->trimmed = number;
      if (free == 0) continue;
      unlink_page(p); /* it goes to a list that was passed already */
      p->held = free;
      oh_store_relaxed(&p->used, p->used | free);
      link_page(p);
      batch[n++] = p;
    }
  return n;
}

/* Purges parts of pages. The lock is not held meanwhile. Result: bytes. */
static size_t purge_parts(bool decay)
{
  OH_ASSERT_LOCKED(&mutex);
  if (OH_SBRK) return 0; /* parts of a page are hardly ever at the end of the area */
  struct page *batch[BATCH_MOST];
  uint64_t touched[BATCH_MOST];
  char *bases[BATCH_MOST];
  size_t number = ++trims, n, bytes = 0;
  while (!oh_space_is_over() && (n = hold(number, decay, batch)) != 0) {
    pthread_mutex_unlock(&mutex); /* system calls: others may allocate and free meanwhile */
    for (size_t i = 0; i < n; i++) {
      touched[i] = ALL;
      bytes += purge_held(batch[i], &touched[i]);
    }
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < n; i++) {
      batch[i]->touched &= touched[i];
      batch[i]->split |= touched[i] != ALL;
      bases[i] = release_held(batch[i]);
    }
    pthread_mutex_unlock(&mutex);
    for (size_t i = 0; i < n; i++)
      if (bases[i] != NULL) oh_space_free(OH_SPACE_POOLS, bases[i], OH_PAGE);
    pthread_mutex_lock(&mutex);
  }
  return bytes;
}

void oh_pool_unpin(void)
{
  pthread_mutex_lock(&mutex);
  for (unsigned f = 0; f < PIECES; f++)
    for (struct page *p = buckets[f]; p != NULL; p = p->next) oh_store_relaxed(&p->pins, (size_t)0);
  pthread_mutex_unlock(&mutex);
}

size_t oh_pool_trim(int thorough)
{
  size_t bytes = 0;
  if (thorough) {
    oh_pool_unpin();
    pthread_mutex_lock(&mutex);
    bytes = purge_parts(false);
    pthread_mutex_unlock(&mutex);
  }
  return bytes + oh_space_trim(OH_SPACE_POOLS);
}

size_t oh_pool_decay(void)
{
  pthread_mutex_lock(&mutex);
  for (unsigned f = 1; f < PIECES; f++)
    for (struct page *p = buckets[f]; p != NULL; p = p->next) p->quiet++;
  size_t bytes = purge_parts(true);
  pthread_mutex_unlock(&mutex);
  return bytes;
}

void oh_pool_range(uintptr_t *from, uintptr_t *to)
{
  pthread_mutex_lock(&mutex);
  *from = lowest;
  *to = highest;
  pthread_mutex_unlock(&mutex);
}

static struct page *first_held(void)
{
  OH_ASSERT_LOCKED(&mutex);
  for (unsigned f = 0; f < PIECES; f++)
    for (struct page *p = buckets[f]; p != NULL; p = p->next)
      if (p->held != 0) return p;
  return NULL;
}

/* The thread that held pieces is gone. */
void oh_pool_forked(void)
{
  struct page *p;
  pthread_mutex_lock(&mutex);
  while ((p = first_held()) != NULL) {
    char *base = release_held(p);
    pthread_mutex_unlock(&mutex);
    if (base != NULL) oh_space_free(OH_SPACE_POOLS, base, OH_PAGE);
    pthread_mutex_lock(&mutex);
  }
  pthread_mutex_unlock(&mutex);
}

void oh_pool_count(struct oh_pool_counters *result)
{
  pthread_mutex_lock(&mutex);
  result->pools = pools;
  result->pages = pages;
  result->resident_free = 0;
  for (uint64_t full = vacant; full != 0; full &= full - 1)
    for (struct page *p = buckets[__builtin_ctzll(full) + 1]; p != NULL; p = p->next)
      result->resident_free += (size_t)popcount(p->touched & ~p->used) << OH_POOL_LOG;
  pthread_mutex_unlock(&mutex);
}

void oh_pool_validate(void)
{
  size_t pools_seen = 0, pages_seen = 0, held = 0;
  pthread_mutex_lock(&mutex);
  for (unsigned f = 0; f <= PIECES; f++) {
    if (f != 0) OH_CHECK((vacant >> (f - 1) & 1) == (buckets[f] != NULL));
    for (struct page *p = buckets[f], *prev = NULL; p != NULL; prev = p, p = p->next) {
      OH_CHECK(p->prev == prev && p->used != 0 && popcount(p->used) == PIECES - f);
      OH_CHECK((p->used & ~p->touched) == 0 && (p->touched & ~ALL) == 0);
      OH_CHECK(p->base != NULL && ((uintptr_t)p->base & (OH_PAGE - 1)) == 0 && page_of(p->base) == p);
      OH_CHECK((p->held & ~p->used) == 0);
      pools_seen += popcount(p->used);
      held += popcount(p->held);
      pages_seen++;
    }
  }
  OH_CHECK(pools_seen == pools + held && pages_seen == pages);
  pthread_mutex_unlock(&mutex);
}

void oh_pool_lock(void) { pthread_mutex_lock(&mutex); }
void oh_pool_unlock(void) { pthread_mutex_unlock(&mutex); }
