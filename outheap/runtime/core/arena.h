/* SPDX-License-Identifier: MIT */
/* An arena: one two-level segregated fit heap. The caller holds the arena's lock unless a function says otherwise.

   An extent is a maximal run of large pages that belong to one arena. `oh_arena_pages` has the arena of each page, so
   that an extent needs no record, and two extents of an arena that touch are one. Its layout; each block begins on a
   multiple of 16:

     | block | block | … | block | sentinel: 16 bytes, a used block of size 0 |

   A block is `size` bytes from its `before` to the next block's `before`. The bytes that its owner may use begin 16
   bytes after its start, and include the next block's `before`, which is needed only while this block is free, and then
   holds its size. So a used block has 8 bytes of overhead.

     sum of sizes of all blocks of an extent + 16 = pages of the extent × OH_PAGE;
     a block that is free lies between two that are not (there is no block before the first of an extent; the sentinel
     is not free);
     BEFORE_FREE of a block  <=>  the block before it is free  <=>  `before` is that block's size;
     a block is on the list of its class  <=>  it is free; the bit of a class is set  <=>  its list is not empty;
     size is 0 (sentinel) or at least OH_ARENA_LEAST, a multiple of 16.

   In the checked build a head also holds a checksum, so that other memory is not taken for a block. */
#ifndef OH_ARENA_H
#define OH_ARENA_H

#include "page.h"
#include <pthread.h>

#define OH_ARENA_LEAST ((size_t)32)
#if UINTPTR_MAX >> 47 != 0
#define OH_ARENA_LIMIT ((size_t)1 << 47) /* no block is that large */
#else
#define OH_ARENA_LIMIT ((size_t)1 << 31)
#endif
#define OH_ARENA_COLUMNS 32 /* classes for each power of two: a class's sizes differ by less than 1/32 */
#define OH_ARENA_ROWS 40
#define OH_ARENA_CLASSES (OH_ARENA_ROWS * OH_ARENA_COLUMNS)

enum {
  OH_ARENA_FREE = 1,
  OH_ARENA_BEFORE_FREE = 2,
  OH_ARENA_PURGED = 4, /* free; its inner system pages are purged */
  OH_ARENA_OLD = 8     /* free since oh_arena_age, and not purged */
};

/* head, of 64 bits everywhere: size (bits 4 … 47), flags (bits 0 … 3), checksum (48 … 59), number of the arena
   (60 … 63) */
struct oh_arena_block {
  uint64_t before, head;
  struct oh_arena_block *next, *prev; /* while it is free */
};
#define OH_ARENA_PAYLOAD 16
#define OH_ARENA_SIZE_MASK (((uint64_t)1 << 48) - 16)
#define OH_ARENA_NUMBER_SHIFT 60

struct oh_arena {
  pthread_mutex_t lock;
  unsigned number;
  size_t pages, extents;
  size_t blocks, bytes; /* in use, with their heads */
  size_t idle;          /* whole large pages inside free blocks */
  size_t purged;        /* bytes of free blocks that are not resident */
  size_t old;           /* bytes of old free blocks that can be purged */
  unsigned oldest;      /* they are in classes below this one */
  uint64_t rows;        /* bit r  <=>  columns[r] != 0 */
  uint32_t columns[OH_ARENA_ROWS];
  struct oh_arena_block **list; /* of OH_ARENA_CLASSES, zeroes at first: memory of which few pages are touched */
} __attribute__((aligned(128)));

struct oh_arena_run { char *start; size_t bytes; };

/* For each large page its owner: 1 + the number of an arena, or 0; and how much of it is in those purged free blocks of
   which it is the first or last page (their other pages are not split). Both change under that arena's lock only, and
   are read without it. */
struct oh_arena_page { uint32_t purged; uint8_t owner; };
extern oh_pagemap oh_arena_pages;

static inline struct oh_arena_page *oh_arena_page_of(uintptr_t address)
{
  return oh_pagemap_find(&oh_arena_pages, address, sizeof(struct oh_arena_page));
}
static inline bool oh_arena_ensure_pages(uintptr_t address, size_t bytes)
{
  return oh_pagemap_ensure(&oh_arena_pages, address, bytes, sizeof(struct oh_arena_page));
}

/* The size of the block that a request needs, head included. bytes < OH_ARENA_LIMIT. */
static inline size_t oh_arena_size_for(size_t bytes)
{
  size_t size = (bytes + 8 + 15) & ~(size_t)15;
  return size < OH_ARENA_LEAST ? OH_ARENA_LEAST : size;
}

/* The next two without the lock: neither the size nor the arena of a used block changes. */
static inline uint64_t oh_arena_head(struct oh_arena_block const *b) { return oh_load_relaxed(&b->head); }
static inline size_t oh_arena_head_size(uint64_t head) { return (size_t)(head & OH_ARENA_SIZE_MASK); }

static inline uint64_t oh_arena_checksum(struct oh_arena_block const *b, uint64_t head)
{
#if OH_DEBUG
  uint64_t sum = ((uintptr_t)b ^ (head << 16 | head >> 48)) * 0x9e3779b97f4a7c15;
  return sum >> 52 << 48;
#else
  return (void)b, (void)head, 0;
#endif
}
static inline bool oh_arena_head_is_sound(struct oh_arena_block const *b, uint64_t head)
{
  uint64_t sum = head & (((uint64_t)1 << 12) - 1) << 48;
  return oh_arena_checksum(b, head ^ sum) == sum;
}

/* The class of a size: row * OH_ARENA_COLUMNS + column. Those of row 0 hold one size each; row r those from 2^(r + 8),
   in equal parts. */
static inline unsigned oh_arena_class_of(size_t size)
{
  size_t g = size >> 4;
  if (g < OH_ARENA_COLUMNS) return (unsigned)g;
  unsigned log = 63 - (unsigned)__builtin_clzll(g);
  return (log - 4) * OH_ARENA_COLUMNS + ((unsigned)(g >> (log - 5)) & (OH_ARENA_COLUMNS - 1));
}

/* Bytes of whole large pages, and the whole system pages, inside a free block. */
static inline size_t oh_arena_idle_in(struct oh_arena_block const *b, size_t size)
{
  uintptr_t from = ((uintptr_t)b + OH_PAGE - 1) & ~(OH_PAGE - 1),
            to = ((uintptr_t)b + size + OH_ARENA_PAYLOAD) & ~(OH_PAGE - 1);
  return from < to ? to - from : 0;
}
static inline struct oh_arena_run oh_arena_inner(struct oh_arena_block const *b, size_t size)
{
  uintptr_t grain = oh_os_page_size() - 1;
  uintptr_t from = ((uintptr_t)b + sizeof(struct oh_arena_block) + grain) & ~grain, to = ((uintptr_t)b + size) & ~grain;
  return (struct oh_arena_run){ (char *)from, from < to ? to - from : 0 };
}

/* A block of `size` bytes out of the arena; NULL if it has none. */
struct oh_arena_block *oh_arena_alloc(struct oh_arena *a, size_t size);

/* Frees a block. The result is a run of large pages that have left the arena, for the caller to return to the space
   (without the lock), or bytes = 0. */
struct oh_arena_run oh_arena_free(struct oh_arena *a, struct oh_arena_block *b);

/* Adds pages from the space, whose owner records exist, and allocates a block of `size` bytes out of them. */
struct oh_arena_block *oh_arena_extend(struct oh_arena *a, struct oh_arena_run run, bool purged, size_t size);

/* Bytes that the arena takes from the space at once, and that it keeps when nothing in them is in use. */
size_t oh_arena_step(struct oh_arena const *a);

/* What stays free for long is purged. From now on all free blocks that are worth it are old, until they are used.
   `hold` takes an old one out of the arena, and tells the pages in it, which the caller purges without the lock;
   NULL: there is none. `release` gives it back, its pages purged or not; its result is that of oh_arena_free. */
void oh_arena_age(struct oh_arena *a);
struct oh_arena_block *oh_arena_hold(struct oh_arena *a, struct oh_arena_run *in);
struct oh_arena_run oh_arena_release(struct oh_arena *a, struct oh_arena_block *b, bool purged);

/* Large pages of a used block that have little purged memory left. */
struct oh_arena_run oh_arena_filled(struct oh_arena_block const *b, size_t size);

/* Returns whole large pages to the space, and purges large parts of other pages. Result: purged bytes. */
size_t oh_arena_trim(struct oh_arena *a);

/* --- checks ------------------------------------------------------------------------------------------------------- */

/* Aborts with a message if an invariant of the arena does not hold. The caller has its lock. */
void oh_arena_check(struct oh_arena *);

/* Checked build: aborts if this is no used block of an arena. Without the lock. */
#if OH_DEBUG
void oh_arena_check_block(struct oh_arena_block const *);
#else
static inline void oh_arena_check_block(struct oh_arena_block const *b) { (void)b; }
#endif

#endif
