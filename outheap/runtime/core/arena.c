/* SPDX-License-Identifier: MIT */
#include "arena.h"
#include "space.h"

/* Blocks of a request's own class, of which some may be too small, that are looked at first; and before the arena
   grows. */
#define OWN_CLASS_MOST 4
#define OWN_CLASS_MOST_AT_LAST 64
/* Free memory that is worth splitting a huge page for: what malloc would have mapped. */
#define PURGE_FROM (OH_PAGE / 16)
/* The least size of a block that may hold a whole large page: an extent of its own. */
#define PAGE_INSIDE_FROM (OH_PAGE - OH_ARENA_PAYLOAD)
#define STEP_MOST ((size_t)32 << 20) /* bytes that the arena takes at once for small blocks */
#define KEPT (OH_ARENA_PURGED | OH_ARENA_OLD)
#define CLASSES OH_ARENA_CLASSES

oh_pagemap oh_arena_pages;

static uintptr_t page_up(uintptr_t a) { return (a + OH_PAGE - 1) & ~(OH_PAGE - 1); }
static uintptr_t page_down(uintptr_t a) { return a & ~(OH_PAGE - 1); }
static struct oh_arena_block *at(uintptr_t a) { return (struct oh_arena_block *)a; }
static struct oh_arena_block *after(struct oh_arena_block *b, size_t size) { return at((uintptr_t)b + size); }
static size_t size_of(struct oh_arena_block const *b) { return oh_arena_head_size(oh_arena_head(b)); }
static size_t flags_of(struct oh_arena_block const *b) { return oh_arena_head(b) & 15; }

static bool owns(struct oh_arena const *a, uintptr_t address)
{
  struct oh_arena_page *p = oh_arena_page_of(address);
  return p != NULL && oh_load_relaxed(&p->owner) == a->number + 1;
}

static void set_owner(uintptr_t from, uintptr_t to, unsigned owner)
{
  for (uintptr_t p = from; p < to; p += OH_PAGE)
    oh_store_relaxed(&oh_arena_page_of(p)->owner, (uint8_t)owner);
}

static void set_head(struct oh_arena const *a, struct oh_arena_block *b, size_t size, size_t flags)
{
  uint64_t head = size | flags | (uint64_t)a->number << OH_ARENA_NUMBER_SHIFT;
  oh_store_relaxed(&b->head, head | oh_arena_checksum(b, head));
}

/* A block that was joined with another is no block any more: to detect that it is freed twice. */
static void wipe(struct oh_arena_block *b)
{
#if OH_DEBUG
  oh_store_relaxed(&b->head, (uint64_t)OH_ARENA_FREE);
#else
  (void)b;
#endif
}

static void add_purged(uintptr_t address, size_t bytes, bool more)
{
  uint32_t *purged = &oh_arena_page_of(address)->purged;
  oh_store_relaxed(purged, more ? *purged + (uint32_t)bytes : *purged - (uint32_t)bytes);
}

/* Its bytes in its first large page, and in its last one if that is another. */
struct edges { size_t first, last; };
static struct edges edges_of(struct oh_arena_run in)
{
  size_t first = page_up((uintptr_t)in.start + 1) - (uintptr_t)in.start;
  if (first >= in.bytes) return (struct edges){ in.bytes, 0 };
  return (struct edges){ first, ((uintptr_t)in.start + in.bytes - 1) % OH_PAGE + 1 };
}

/* The free block begins or ceases to be purged. */
static void count_purged(struct oh_arena *a, struct oh_arena_block const *b, size_t size, bool more)
{
  struct oh_arena_run in = oh_arena_inner(b, size);
  struct edges e = edges_of(in);
  a->purged = more ? a->purged + in.bytes : a->purged - in.bytes;
  if (e.first != 0) add_purged((uintptr_t)in.start, e.first, more);
  if (e.last != 0) add_purged((uintptr_t)in.start + in.bytes - 1, e.last, more);
}

struct oh_arena_run oh_arena_filled(struct oh_arena_block const *b, size_t size)
{
  uintptr_t from = page_down((uintptr_t)b), last = page_down((uintptr_t)b + size - 1), to = last + OH_PAGE;
  if (oh_load_relaxed(&oh_arena_page_of(from)->purged) >= PURGE_FROM) from += OH_PAGE;
  if (from < to && oh_load_relaxed(&oh_arena_page_of(last)->purged) >= PURGE_FROM) to = last;
  return (struct oh_arena_run){ (char *)from, from < to ? to - from : 0 };
}

/* Makes [b, b + size) a free block, purged or old. Nothing around it is free. */
static void insert(struct oh_arena *a, struct oh_arena_block *b, size_t size, size_t kept)
{
  unsigned c = oh_arena_class_of(size);
  if (kept == OH_ARENA_OLD && oh_arena_inner(b, size).bytes < PURGE_FROM) kept = 0;
  set_head(a, b, size, OH_ARENA_FREE | kept);
  struct oh_arena_block *n = after(b, size);
  n->before = size;
  set_head(a, n, size_of(n), flags_of(n) | OH_ARENA_BEFORE_FREE);
  b->prev = NULL;
  b->next = a->list[c];
  if (b->next != NULL) b->next->prev = b;
  a->list[c] = b;
  a->columns[c / OH_ARENA_COLUMNS] |= (uint32_t)1 << c % OH_ARENA_COLUMNS;
  a->rows |= (uint64_t)1 << c / OH_ARENA_COLUMNS;
  if (size >= PAGE_INSIDE_FROM) a->idle += oh_arena_idle_in(b, size);
  if (kept & OH_ARENA_PURGED) count_purged(a, b, size, true);
  if (kept & OH_ARENA_OLD) a->old += oh_arena_inner(b, size).bytes;
}

/* Takes a free block off its list; its head, and the next one's, stay as they are. */
static void withdraw(struct oh_arena *a, struct oh_arena_block *b)
{
  size_t size = size_of(b);
  if (size >= PAGE_INSIDE_FROM) a->idle -= oh_arena_idle_in(b, size);
  if (flags_of(b) & OH_ARENA_PURGED) count_purged(a, b, size, false);
  if (flags_of(b) & OH_ARENA_OLD) a->old -= oh_arena_inner(b, size).bytes;
  if (b->next != NULL) b->next->prev = b->prev;
  if (b->prev != NULL) b->prev->next = b->next;
  else {
    unsigned c = oh_arena_class_of(size), row = c / OH_ARENA_COLUMNS;
    a->list[c] = b->next;
    if (b->next == NULL && (a->columns[row] &= ~((uint32_t)1 << c % OH_ARENA_COLUMNS)) == 0)
      a->rows &= ~((uint64_t)1 << row);
  }
}

/* The first class from `c` on that has blocks, or CLASSES. */
static unsigned next_class(struct oh_arena const *a, unsigned c)
{
  unsigned row = c / OH_ARENA_COLUMNS;
  if (row == OH_ARENA_ROWS) return CLASSES;
  uint32_t columns = a->columns[row] & ~(uint32_t)0 << c % OH_ARENA_COLUMNS;
  if (columns == 0) {
    uint64_t rows = a->rows & ~(uint64_t)1 << row;
    if (rows == 0) return CLASSES;
    row = (unsigned)__builtin_ctzll(rows);
    columns = a->columns[row];
  }
  return row * OH_ARENA_COLUMNS + (unsigned)__builtin_ctz(columns);
}

/* First a few of the request's own class, so that a size that is freed and allocated repeatedly finds its old block;
   then the next class that is not empty, where all blocks are large enough. */
static struct oh_arena_block *find(struct oh_arena *a, size_t size)
{
  unsigned c = oh_arena_class_of(size), n = 0;
  struct oh_arena_block *own = a->list[c];
  for (; own != NULL && n < OWN_CLASS_MOST; own = own->next, n++)
    if (size_of(own) >= size) return own;
  c = next_class(a, c + 1);
  if (c != CLASSES) return a->list[c];
  for (; own != NULL && n < OWN_CLASS_MOST_AT_LAST; own = own->next, n++)
    if (size_of(own) >= size) return own;
  return NULL;
}

/* The free range of `total` bytes at b, on no list, becomes a used block of `size` or a little more, and a free one if
   enough is left. */
static struct oh_arena_block *carve(struct oh_arena *a, struct oh_arena_block *b, size_t total, size_t size,
                                    size_t kept)
{
  struct oh_arena_block *rest = after(b, size);
  if (total - size >= OH_ARENA_LEAST) {
    set_head(a, b, size, 0);
    insert(a, rest, total - size, kept);
  } else {
    size = total;
    rest = after(b, size);
    set_head(a, b, size, 0);
    set_head(a, rest, size_of(rest), flags_of(rest) & ~(size_t)OH_ARENA_BEFORE_FREE);
  }
  a->blocks++;
  a->bytes += size;
  return b;
}

struct oh_arena_block *oh_arena_alloc(struct oh_arena *a, size_t size)
{
  OH_ASSERT_LOCKED(&a->lock);
  struct oh_arena_block *b = find(a, size);
  if (b == NULL) return NULL;
  withdraw(a, b);
  return carve(a, b, size_of(b), size, flags_of(b) & KEPT);
}

/* Joins the block b, on no list, with its free neighbours, which leave their lists. */
static struct oh_arena_block *coalesce(struct oh_arena *a, struct oh_arena_block *b, size_t *size)
{
  struct oh_arena_block *n = after(b, *size);
  if (flags_of(n) & OH_ARENA_FREE) {
    withdraw(a, n);
    *size += size_of(n);
    wipe(n);
  }
  if (flags_of(b) & OH_ARENA_BEFORE_FREE) {
    struct oh_arena_block *p = at((uintptr_t)b - b->before);
    withdraw(a, p);
    *size += size_of(p);
    wipe(b);
    b = p;
  }
  return b;
}

/* Cuts the large pages inside a free range, which is on no list, out of the arena, and makes free blocks of what is
   left on both sides. A side that would be too small for a block keeps another page. */
static struct oh_arena_run cut(struct oh_arena *a, struct oh_arena_block *b, size_t size)
{
  uintptr_t start = (uintptr_t)b, end = start + size;
  struct oh_arena_block *n = at(end);
  bool first = start == page_down(start) && !owns(a, start - OH_PAGE), last = size_of(n) == 0;
  uintptr_t from = first ? start : page_up(start + OH_ARENA_PAYLOAD),
            to = last ? end + OH_ARENA_PAYLOAD : page_down(end);
  if (!first && from - OH_ARENA_PAYLOAD - start == 16) from += OH_PAGE;
  if (!last && end - to == 16) to -= OH_PAGE;
  if (from >= to) {
    insert(a, b, size, 0);
    return (struct oh_arena_run){ NULL, 0 };
  }
  set_owner(from, to, 0);
  a->pages -= (to - from) >> OH_PAGE_LOG;
  a->extents = a->extents + !first + !last - 1;
  if (!first) {
    set_head(a, at(from - OH_ARENA_PAYLOAD), 0, 0); /* the lower part's sentinel */
    if (from - OH_ARENA_PAYLOAD != start) insert(a, b, from - OH_ARENA_PAYLOAD - start, 0);
  }
  if (!last) {
    if (to == end) set_head(a, n, size_of(n), flags_of(n) & ~(size_t)OH_ARENA_BEFORE_FREE);
    else insert(a, at(to), end - to, 0);
  }
  return (struct oh_arena_run){ (char *)from, to - from };
}

/* `kept` is so only if nothing is joined with the block. */
static struct oh_arena_run give_back(struct oh_arena *a, struct oh_arena_block *b, size_t kept)
{
  OH_ASSERT_LOCKED(&a->lock);
  size_t size = size_of(b), alone = size;
  a->blocks--;
  a->bytes -= size;
  b = coalesce(a, b, &size);
  if (size >= PAGE_INSIDE_FROM && a->idle + oh_arena_idle_in(b, size) > oh_arena_step(a)) return cut(a, b, size);
  insert(a, b, size, size == alone ? kept : 0);
  return (struct oh_arena_run){ NULL, 0 };
}

struct oh_arena_run oh_arena_free(struct oh_arena *a, struct oh_arena_block *b) { return give_back(a, b, 0); }

/* --- what stays free -----------------------------------------------------------------------------------------------*/

void oh_arena_age(struct oh_arena *a)
{
  OH_ASSERT_LOCKED(&a->lock);
  for (unsigned i = oh_arena_class_of(PURGE_FROM); (i = next_class(a, i)) != CLASSES; i++)
    for (struct oh_arena_block *b = a->list[i]; b != NULL; b = b->next) {
      size_t size = size_of(b), flags = flags_of(b), bytes = oh_arena_inner(b, size).bytes;
      if ((flags & KEPT) != 0 || bytes < PURGE_FROM) continue;
      set_head(a, b, size, flags | OH_ARENA_OLD);
      a->old += bytes;
    }
  a->oldest = a->old != 0 ? CLASSES : 0;
}

/* Old blocks are in the classes below `oldest`: new ones come about only when a rest of one stays, which is smaller. */
struct oh_arena_block *oh_arena_hold(struct oh_arena *a, struct oh_arena_run *in)
{
  OH_ASSERT_LOCKED(&a->lock);
  for (; a->old != 0 && a->oldest > 0; a->oldest--)
    for (struct oh_arena_block *b = a->list[a->oldest - 1]; b != NULL; b = b->next) {
      size_t size = size_of(b);
      if (!(flags_of(b) & OH_ARENA_OLD)) continue;
      struct oh_arena_block *n = after(b, size);
      withdraw(a, b);
      set_head(a, b, size, 0);
      set_head(a, n, size_of(n), flags_of(n) & ~(size_t)OH_ARENA_BEFORE_FREE);
      a->blocks++;
      a->bytes += size;
      *in = oh_arena_inner(b, size);
      return b;
    }
  return NULL;
}

struct oh_arena_run oh_arena_release(struct oh_arena *a, struct oh_arena_block *b, bool purged)
{
  return give_back(a, b, purged ? OH_ARENA_PURGED : 0);
}

size_t oh_arena_step(struct oh_arena const *a)
{
  size_t step = a->pages / 64 << OH_PAGE_LOG;
  return step < 2 * OH_PAGE ? 2 * OH_PAGE : step > STEP_MOST ? STEP_MOST : step;
}

struct oh_arena_block *oh_arena_extend(struct oh_arena *a, struct oh_arena_run run, bool purged, size_t size)
{
  OH_ASSERT_LOCKED(&a->lock);
  uintptr_t start = (uintptr_t)run.start, end = start + run.bytes;
  size_t flags = 0;
  bool below = owns(a, start - OH_PAGE), above = owns(a, end);
  set_owner(start, end, a->number + 1);
  a->pages += run.bytes >> OH_PAGE_LOG;
  a->extents = a->extents + 1 - below - above;
  if (below) { /* the new block begins with the sentinel of the extent below */
    start -= OH_ARENA_PAYLOAD;
    flags = flags_of(at(start)) & OH_ARENA_BEFORE_FREE;
  }
  if (!above) {
    end -= OH_ARENA_PAYLOAD;
    set_head(a, at(end), 0, 0);
  }
  struct oh_arena_block *b = at(start);
  size_t whole = end - start;
  set_head(a, b, whole, flags);
  struct oh_arena_block *joined = coalesce(a, b, &whole);
  if (whole != end - start) purged = false;
  return carve(a, joined, whole, size, purged ? OH_ARENA_PURGED : 0);
}

size_t oh_arena_trim(struct oh_arena *a)
{
  OH_ASSERT_LOCKED(&a->lock);
  size_t bytes = 0;
  for (unsigned i = oh_arena_class_of(PURGE_FROM); (i = next_class(a, i)) != CLASSES; i++)
    for (struct oh_arena_block *b = a->list[i], *next; b != NULL; b = next) {
      next = b->next; /* new blocks are inserted before */
      if (oh_arena_idle_in(b, size_of(b)) == 0) continue;
      withdraw(a, b);
      struct oh_arena_run run = cut(a, b, size_of(b));
      if (run.bytes != 0) oh_space_free(OH_SPACE_BLOCKS, run.start, run.bytes);
    }
  if (OH_SBRK) return bytes; /* parts of pages cannot be given back */
  for (unsigned i = oh_arena_class_of(PURGE_FROM); (i = next_class(a, i)) != CLASSES; i++)
    for (struct oh_arena_block *b = a->list[i]; b != NULL; b = b->next) {
      struct oh_arena_run in = oh_arena_inner(b, size_of(b));
      if (in.bytes < PURGE_FROM || (flags_of(b) & OH_ARENA_PURGED) != 0) continue;
      oh_space_purge(OH_SPACE_BLOCKS, in.start, in.bytes);
      if (flags_of(b) & OH_ARENA_OLD) a->old -= in.bytes;
      set_head(a, b, size_of(b), OH_ARENA_FREE | OH_ARENA_PURGED);
      count_purged(a, b, size_of(b), true);
      bytes += in.bytes;
    }
  return bytes;
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static unsigned owner_of(uintptr_t address)
{
  struct oh_arena_page *p = oh_arena_page_of(address);
  return p == NULL ? 0 : oh_load_relaxed(&p->owner);
}

#if OH_DEBUG
void oh_arena_check_block(struct oh_arena_block const *b)
{
  void const *payload = (char const *)b + OH_ARENA_PAYLOAD;
  if ((uintptr_t)b % 16 != 0 || owner_of((uintptr_t)b) == 0) oh_log_abort("not a block: %p", payload);
  uint64_t head = oh_arena_head(b);
  if (head & OH_ARENA_FREE) oh_log_abort("block given back already: %p", payload);
  if (owner_of((uintptr_t)b) != (head >> OH_ARENA_NUMBER_SHIFT) + 1 || oh_arena_head_size(head) < OH_ARENA_LEAST ||
      !oh_arena_head_is_sound(b, head))
    oh_log_abort("not a block, or its head was written over: %p", payload);
}
#endif

struct seen { size_t blocks, bytes, free, free_bytes, edges; };

/* Walks an extent from its first block to its sentinel. Result: its end. */
static uintptr_t walk(struct oh_arena const *a, uintptr_t start, struct seen *seen)
{
  struct oh_arena_block *b = (struct oh_arena_block *)start;
  for (size_t before = 0;;) {
    uint64_t head = oh_arena_head(b);
    size_t size = oh_arena_head_size(head);
    OH_CHECK(owner_of((uintptr_t)b) == a->number + 1 && head >> OH_ARENA_NUMBER_SHIFT == a->number &&
             oh_arena_head_is_sound(b, head));
    OH_CHECK(((head & OH_ARENA_BEFORE_FREE) != 0) == (before != 0));
    if (before != 0) OH_CHECK(b->before == before && (head & OH_ARENA_FREE) == 0);
    if (size == 0) break;
    OH_CHECK(size >= OH_ARENA_LEAST);
    if (head & OH_ARENA_FREE) seen->free++, seen->free_bytes += size;
    else seen->blocks++, seen->bytes += size;
    before = head & OH_ARENA_FREE ? size : 0;
    b = (struct oh_arena_block *)((uintptr_t)b + size);
  }
  uintptr_t end = (uintptr_t)b + OH_ARENA_PAYLOAD;
  OH_CHECK((end & (OH_PAGE - 1)) == 0 && owner_of(end) != a->number + 1);
  return end;
}

static void check_lists(struct oh_arena const *a, struct seen const *seen)
{
  size_t free = 0, bytes = 0, idle = 0, purged = 0, edges = 0, old = 0;
  for (unsigned row = 0; row < OH_ARENA_ROWS; row++) OH_CHECK((a->rows >> row & 1) == (a->columns[row] != 0));
  for (unsigned c = 0; c < CLASSES; c++) {
    struct oh_arena_block *prev = NULL;
    bool any = a->columns[c / OH_ARENA_COLUMNS] >> c % OH_ARENA_COLUMNS & 1;
    OH_CHECK(any == (a->list[c] != NULL));
    for (struct oh_arena_block *b = a->list[c]; b != NULL; prev = b, b = b->next) {
      uint64_t head = oh_arena_head(b);
      size_t size = oh_arena_head_size(head);
      OH_CHECK((head & OH_ARENA_FREE) != 0 && b->prev == prev && oh_arena_class_of(size) == c);
      free++;
      bytes += size;
      idle += oh_arena_idle_in(b, size);
      if (head & OH_ARENA_PURGED) {
        struct edges e = edges_of(oh_arena_inner(b, size));
        purged += oh_arena_inner(b, size).bytes;
        edges += e.first + e.last;
      }
      if (head & OH_ARENA_OLD) {
        OH_CHECK((head & OH_ARENA_PURGED) == 0 && c < a->oldest);
        old += oh_arena_inner(b, size).bytes;
      }
    }
  }
  OH_CHECK(free == seen->free && bytes == seen->free_bytes && idle == a->idle && purged == a->purged &&
           edges == seen->edges && old == a->old);
}

void oh_arena_check(struct oh_arena *a)
{
  OH_ASSERT_LOCKED(&a->lock);
  struct seen seen = { 0, 0, 0, 0, 0 };
  size_t pages = 0, extents = 0;
  for (size_t i = 0; i < OH_PAGEMAP_ROOT; i++) {
    if (oh_load_acquire(&oh_arena_pages.leaf[i]) == NULL) continue;
    for (size_t j = 0; j < OH_PAGEMAP_LEAF; j++) {
      uintptr_t page = ((uintptr_t)i << OH_PAGEMAP_LEAF_LOG | j) << OH_PAGE_LOG;
      if (owner_of(page) != a->number + 1) continue;
      pages++;
      seen.edges += oh_arena_page_of(page)->purged;
      if (owner_of(page - OH_PAGE) == a->number + 1) continue;
      extents++;
      (void)walk(a, page, &seen);
    }
  }
  OH_CHECK(pages == a->pages && extents == a->extents);
  OH_CHECK(seen.blocks == a->blocks && seen.bytes == a->bytes);
  OH_CHECK(seen.bytes + seen.free_bytes + OH_ARENA_PAYLOAD * extents == pages << OH_PAGE_LOG);
  check_lists(a, &seen);
}
