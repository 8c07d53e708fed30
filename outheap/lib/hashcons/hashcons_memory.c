/* SPDX-License-Identifier: MIT */
#include "hashcons_memory.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

typedef struct outheap_hashcons_page page;
typedef struct outheap_hashcons_chunk chunk;

#define PAGE OUTHEAP_HASHCONS_PAGE
#define MAPS OUTHEAP_HASHCONS_MAPS
#define LARGEST OUTHEAP_HASHCONS_LARGEST
#define PAGES ((size_t)OUTHEAP_HASHCONS_PAGES)
enum {
  SIZES = 64,
  PAGES_AT_ONCE = 64 /* that are mapped at a time */
};

struct outheap_hashcons_reach outheap_hashcons_reach;
struct outheap_hashcons_memory outheap_hashcons_memory;
uint16_t outheap_hashcons_memory_numbers[OUTHEAP_REGION_ADDRESSES / OUTHEAP_REGION_CHUNK];
static struct outheap_hashcons_memory *const memory = &outheap_hashcons_memory;

static uint8_t size_of_words[LARGEST + 1];
static uint32_t words_of_size[SIZES];
static page *with_room[SIZES];
static page *dirty, *clean; /* free pages */

/* --- the lock ----------------------------------------------------------------------------------------------------- */

bool outheap_hashcons_lock_held;

void outheap_hashcons_lock_wait(void)
{
  struct timespec little = { 0, 50000 };
  for (int i = 0;; i++) {
    if (!__atomic_load_n(&outheap_hashcons_lock_held, __ATOMIC_RELAXED) &&
        !__atomic_exchange_n(&outheap_hashcons_lock_held, true, __ATOMIC_ACQUIRE))
      return;
    if (i >= 1000) nanosleep(&little, NULL);
    else if (i % 50 == 49) sched_yield();
  }
}

void outheap_hashcons_lock_start(void)
{
  (void)pthread_atfork(outheap_hashcons_lock_take, outheap_hashcons_lock_give, outheap_hashcons_lock_give);
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

static void link(page **list, page *p)
{
  p->next = *list;
  p->previous = NULL;
  if (*list != NULL) (*list)->previous = p;
  *list = p;
}

static void unlink(page **list, page *p)
{
  if (p->next != NULL) p->next->previous = p->previous;
  if (p->previous != NULL) p->previous->next = p->next;
  else *list = p->next;
}

static chunk *chunk_of(page *p)
{
  for (size_t i = memory->chunks; i-- > 0;)
    if (p >= memory->chunk[i]->page && p < memory->chunk[i]->page + PAGES) return memory->chunk[i];
  return NULL;
}

static char *start_of(chunk *c, page *p) { return c->base + MAPS + (size_t)(p - c->page) * PAGE; }

/* --- chunks ------------------------------------------------------------------------------------------------------- */

static bool map_maps(struct outheap_region_addresses *a)
{
  for (int i = 0; i < OUTHEAP_REGION_ADDRESSES_ATTEMPTS; i++) {
    if (!outheap_region_addresses_take(a, OUTHEAP_HASHCONS_CHUNK, OUTHEAP_HASHCONS_CHUNK)) return false;
    if (outheap_region_addresses_map(a->base, MAPS, PROT_READ | PROT_WRITE, MAP_PRIVATE, -1, 0)) {
      if (outheap_marker_claim_cells(a->base, a->bytes)) return true;
      outheap_region_addresses_unmap(a->base, MAPS); /* the runtime refuses these addresses: they stay taken */
      continue;
    }
    if (errno != EEXIST) {
      outheap_region_addresses_give(a);
      return false;
    }
    outheap_region_addresses_avoid(a, a->base);
  }
  return false;
}

static chunk *new_chunk(void)
{
  struct outheap_region_addresses a;
  if (memory->chunks == OUTHEAP_HASHCONS_CHUNKS) return NULL;
  chunk *c = calloc(1, sizeof *c);
  if (c == NULL) return NULL;
  if (!map_maps(&a)) {
    free(c);
    return NULL;
  }
#ifdef MADV_NOHUGEPAGE
  (void)madvise(a.base, MAPS, MADV_NOHUGEPAGE); /* they are touched here and there */
#endif
  outheap_marker_use_map(a.base, a.bytes, outheap_hashcons_reach.current);
  c->base = a.base;
  memory->chunk[memory->chunks++] = c;
  __atomic_store_n(&outheap_hashcons_memory_numbers[(uintptr_t)a.base / OUTHEAP_REGION_CHUNK], (uint16_t)memory->chunks,
                   __ATOMIC_RELAXED);
  return c;
}

/* Ensures that the first `pages` pages are mapped. */
static bool map_pages(chunk *c, size_t pages)
{
  if (pages <= c->mapped) return true;
  size_t to = OUTHEAP_REGION_ROUND(pages, (size_t)PAGES_AT_ONCE);
  if (to > PAGES) to = PAGES;
  if (!outheap_region_addresses_map(c->base + MAPS + c->mapped * PAGE, (to - c->mapped) * PAGE, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE, -1, 0))
    return false;
  c->mapped = (uint32_t)to;
  return true;
}

/* --- pages -------------------------------------------------------------------------------------------------------- */

static void take_free(page *p)
{
  unlink(p->dirty ? &dirty : &clean, p);
  memory->dirty -= p->dirty;
  p->dirty = false;
}

static void give_page(page *p)
{
  *p = (page){ .dirty = true };
  link(&dirty, p);
  memory->dirty++;
}

static page *begin_page(chunk *c)
{
  if (c->begun == PAGES || !map_pages(c, c->begun + (size_t)1)) return NULL;
  return &c->page[c->begun++];
}

static page *any_page(void)
{
  page *p = dirty != NULL ? dirty : clean;
  if (p != NULL) {
    take_free(p);
    return p;
  }
  if (memory->chunks != 0 && (p = begin_page(memory->chunk[memory->chunks - 1])) != NULL) return p;
  chunk *c = new_chunk();
  return c == NULL ? NULL : begin_page(c);
}

void outheap_hashcons_memory_trim(size_t keep)
{
  while (memory->dirty > keep) {
    page *p = dirty;
    take_free(p);
    link(&clean, p);
    (void)madvise(start_of(chunk_of(p), p), PAGE, MADV_DONTNEED);
  }
}

/* --- large cells -------------------------------------------------------------------------------------------------- */

/* Takes `n` free pages in a row, all of which are begun afterwards. Returns the first one; PAGES: there are none. */
static size_t take_run(chunk *c, size_t n)
{
  size_t length = 0;
  for (size_t i = 0; i < PAGES; i++) {
    length = c->page[i].words == 0 ? length + 1 : 0;
    if (length != n) continue;
    if (i >= c->begun && !map_pages(c, i + 1)) return PAGES;
    for (size_t j = i + 1 - n; j <= i && j < c->begun; j++) take_free(&c->page[j]);
    if (i >= c->begun) c->begun = (uint32_t)(i + 1);
    return i + 1 - n;
  }
  return PAGES;
}

static outheap_hashcons_cell *alloc_large(size_t words)
{
  size_t n = (words * OUTHEAP_HASHCONS_WORD + PAGE - 1) / PAGE, first = PAGES;
  chunk *c = NULL;
  if (words > PAGES * PAGE / OUTHEAP_HASHCONS_WORD) return NULL;
  for (size_t i = 0; i < memory->chunks && first == PAGES; i++) first = take_run(c = memory->chunk[i], n);
  if (first == PAGES) {
    if ((c = new_chunk()) == NULL || (first = take_run(c, n)) == PAGES) return NULL;
  }
  uint32_t whole = (uint32_t)(n * PAGE / OUTHEAP_HASHCONS_WORD);
  for (size_t i = 0; i < n; i++)
    c->page[first + i] = (page){ .words = whole, .used = 1, .fresh = 1, .capacity = 1, .back = (uint32_t)i };
  return (outheap_hashcons_cell *)start_of(c, &c->page[first]);
}

/* --- cells -------------------------------------------------------------------------------------------------------- */

/* Fills in the tables of sizes: each number of words up to 16, then eight sizes for each doubling. */
static void make_sizes(void)
{
  size_t size = 0, words = 0;
  for (size_t of = 4; of <= LARGEST; size++) {
    words_of_size[size] = (uint32_t)of;
    while (words <= of) size_of_words[words++] = (uint8_t)size;
    size_t step = 1;
    while (step * 16 <= of) step *= 2;
    of += step;
  }
}
_Static_assert(13 + 6 * 8 + 1 <= SIZES, "from 4 to 16 one by one; from 16 to 1024 eight sizes for each doubling");

static page *new_page(uint32_t words)
{
  page *p = any_page();
  if (p == NULL) return NULL;
  *p = (page){ .words = words, .capacity = (uint32_t)(PAGE / OUTHEAP_HASHCONS_WORD / words), .listed = true };
  return p;
}

outheap_hashcons_cell *outheap_hashcons_memory_alloc(size_t words)
{
  if (words_of_size[0] == 0) make_sizes();
  outheap_hashcons_cell *c;
  if (words > LARGEST) {
    if ((c = alloc_large(words)) == NULL) return NULL;
  }
  else {
    uint8_t size = size_of_words[words];
    page *p = with_room[size];
    if (p == NULL) {
      if ((p = new_page(words_of_size[size])) == NULL) return NULL;
      link(&with_room[size], p);
    }
    if (p->free != NULL) {
      c = p->free;
      p->free = *(uint64_t **)c;
    }
    else c = (uint64_t *)start_of(chunk_of(p), p) + (size_t)p->words * p->fresh++;
    if (++p->used == p->capacity) {
      unlink(&with_room[size], p);
      p->listed = false;
    }
  }
  memory->cells++;
  memory->words += outheap_hashcons_memory_page((uintptr_t)c)->words;
  return c;
}

void outheap_hashcons_memory_free(outheap_hashcons_cell *c)
{
  page *p = outheap_hashcons_memory_page((uintptr_t)c);
  memory->cells--;
  memory->freed++;
  memory->words -= p->words;
  if (p->words > LARGEST) {
    *c = 0;
    for (size_t n = p->words * OUTHEAP_HASHCONS_WORD / PAGE; n-- > 0;) give_page(p + n);
    return;
  }
  page **list = &with_room[size_of_words[p->words]];
#ifdef OUTHEAP_HASHCONS_POISON
  memset(c, 0xd7, p->words * OUTHEAP_HASHCONS_WORD); /* for tests: whoever reads it finds immediates */
#endif
  *(uint64_t **)c = p->free;
  p->free = c;
  if (--p->used == 0) {
    if (p->listed) unlink(list, p);
    give_page(p);
  }
  else if (!p->listed) {
    link(list, p);
    p->listed = true;
  }
}
