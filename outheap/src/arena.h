/* SPDX-License-Identifier: MIT */
/* One two-level segregated fit heap. No locks here: block.c has one for each arena, and whoever calls holds it, unless said otherwise.

   An extent is a maximal run of large pages that belong to one arena: `oh_owners` tells whose a page is, so that an extent needs no record, and two extents of an arena that
   come to touch are one. It looks like this; each block begins on a multiple of 16:

     | block | block | … | block | sentinel: 16 bytes, a used block of size 0 |

   A block is `size` bytes from its `before` to the next block's `before`. The bytes that its owner may use begin 16 bytes after it, and include
   the next block's `before`, which is only needed while this block is free, for its size then. So a used block costs 8 bytes.

     sum of sizes of all blocks of an extent + 16 = pages of the extent × OH_PAGE;
     a block that is free lies between two that are not (there is no block before the first of an extent; the sentinel is not free);
     BEFORE_FREE of a block  <=>  the block before it is free  <=>  `before` is that block's size;
     a block is on the list of its class  <=>  it is free; the bit of a class is set  <=>  its list is not empty;
     size is 0 (sentinel) or at least OH_LEAST, a multiple of 16.

   In the checked build a head also holds a check sum, so that what is no block is not taken for one. */
#ifndef OH_ARENA_H
#define OH_ARENA_H

#include "atomic.h"
#include "pagemap.h"
#include <pthread.h>

#define OH_LEAST ((size_t)32)
#define OH_BLOCK_LIMIT ((size_t)1 << 47) /* no block is that large */
#define OH_COLUMNS 32                    /* classes for each power of two: a class's sizes differ by less than 1/32 */
#define OH_ROWS 40

enum { OH_FREE = 1, OH_BEFORE_FREE = 2, OH_EMPTY = 4 /* free; its inner system pages are not resident */ };

/* head: size (bits 4 … 47), flags (bits 0 … 3), check sum (48 … 59), number of the arena (60 … 63) */
struct oh_block {
  size_t before, head;
  struct oh_block *next, *prev; /* while it is free */
};
#define OH_PAYLOAD 16
#define OH_SIZE_MASK (((size_t)1 << 48) - 16)
#define OH_ARENA_SHIFT 60

struct oh_arena {
  pthread_mutex_t lock;
  unsigned number;
  size_t pages, extents;
  size_t blocks, bytes; /* in use, with their heads */
  size_t idle;          /* whole large pages inside free blocks */
  size_t empty;         /* bytes of free blocks that are not resident */
  uint64_t rows;        /* bit r  <=>  columns[r] != 0 */
  uint32_t columns[OH_ROWS];
  struct oh_block *list[OH_ROWS * OH_COLUMNS];
} __attribute__((aligned(128)));

struct oh_run { char *start; size_t bytes; };

/* Whose a large page is: 1 + the number of an arena, in an atomic byte that changes under that arena's lock only. */
extern oh_map oh_owners;

/* The size of the block that a request needs, head included. bytes < OH_BLOCK_LIMIT. */
static inline size_t oh_size_for(size_t bytes)
{
  size_t size = (bytes + 8 + 15) & ~(size_t)15;
  return size < OH_LEAST ? OH_LEAST : size;
}

/* The next two without the lock: neither the size nor the arena of a used block changes. */
static inline size_t oh_block_head(struct oh_block const *b) { return oh_load_relaxed(&b->head); }
static inline size_t oh_head_size(size_t head) { return head & OH_SIZE_MASK; }

static inline size_t oh_check_sum(struct oh_block const *b, size_t head)
{
#if OH_DEBUG
  uint64_t sum = ((uintptr_t)b ^ (head << 16 | head >> 48)) * 0x9e3779b97f4a7c15;
  return (size_t)(sum >> 52) << 48;
#else
  return (void)b, (void)head, 0;
#endif
}
static inline bool oh_head_is_sound(struct oh_block const *b, size_t head)
{
  size_t sum = head & (((size_t)1 << 12) - 1) << 48;
  return oh_check_sum(b, head ^ sum) == sum;
}

/* The class of a size: row * OH_COLUMNS + column. Those of row 0 hold one size each; row r those from 2^(r + 8), in equal parts. */
static inline unsigned oh_class_of(size_t size)
{
  size_t g = size >> 4;
  if (g < OH_COLUMNS) return (unsigned)g;
  unsigned log = 63 - (unsigned)__builtin_clzll(g);
  return (log - 4) * OH_COLUMNS + ((unsigned)(g >> (log - 5)) & (OH_COLUMNS - 1));
}

/* Bytes of whole large pages, and the whole system pages, inside a free block. */
static inline size_t oh_idle_in(struct oh_block const *b, size_t size)
{
  uintptr_t from = ((uintptr_t)b + OH_PAGE - 1) & ~(OH_PAGE - 1), to = ((uintptr_t)b + size + OH_PAYLOAD) & ~(OH_PAGE - 1);
  return from < to ? to - from : 0;
}
static inline struct oh_run oh_inner(struct oh_block const *b, size_t size)
{
  uintptr_t grain = oh_os_page() - 1;
  uintptr_t from = ((uintptr_t)b + sizeof(struct oh_block) + grain) & ~grain, to = ((uintptr_t)b + size) & ~grain;
  return (struct oh_run){ (char *)from, from < to ? to - from : 0 };
}

/* A block of `size` bytes out of the arena; NULL if it has none. */
struct oh_block *oh_arena_take(struct oh_arena *a, size_t size);

/* Gives a block back. The result is a run of large pages that have left the arena, for the caller to give to the space (without the lock), or bytes = 0. */
struct oh_run oh_arena_give(struct oh_arena *a, struct oh_block *b);

/* Adds pages from the space, whose owner records exist, and takes a block of `size` bytes out of them. */
struct oh_block *oh_arena_extend(struct oh_arena *a, struct oh_run run, bool empty, size_t size);

/* Pages that the arena likes to take at once, and to keep though nothing in them is in use. */
size_t oh_arena_step(struct oh_arena const *a);

/* Gives whole large pages to the space, and large parts of others to the system. Result: bytes of the latter. */
size_t oh_arena_trim(struct oh_arena *a);

void oh_arena_validate(struct oh_arena *a);

/* Checked build: aborts if this is no used block of an arena. Without the lock. */
#if OH_DEBUG
void oh_block_check(struct oh_block const *b);
#else
static inline void oh_block_check(struct oh_block const *b) { (void)b; }
#endif

#endif
