/* SPDX-License-Identifier: MIT */
/* Bitmap allocation, as HotSpot keeps JNI's global references (its OopStorage): blocks of one word's worth of cells
   with a bitmap of those in use, found from a cell by its address, and a list of the blocks that are not full. What
   HotSpot does not have: the blocks written to since the last minor collection are listed, and it looks at these alone.
   For one thread on one domain. */
#ifndef BENCH_BITMAP_H
#define BENCH_BITMAP_H

#include <caml/mlvalues.h>
#include <stdbool.h>
#include <stdint.h>

enum { BITMAP_CELLS = 64, BITMAP_BLOCK_BYTES = 8 * BITMAP_CELLS, BITMAP_HEADER_CELLS = 4 };
#define BITMAP_FULL (~(uint64_t)0)
#define BITMAP_EMPTY (((uint64_t)1 << BITMAP_HEADER_CELLS) - 1) /* the header's own cells count as used */

typedef union bitmap_block {
  struct {
    uint64_t used;
    union bitmap_block *next, *previous; /* in the ring of blocks that are not full */
    union bitmap_block *next_young;      /* in the list of blocks written to; NULL: not in it */
  };
  value cells[BITMAP_CELLS];
} bitmap_block;

typedef struct bench_cell *boxroot;

extern bitmap_block bitmap_open; /* the head of the ring */
bool boxroot_setup(void);
boxroot bitmap_create_slow(value v); /* NULL: no memory */
void bitmap_note_young(bitmap_block *block);
void bitmap_note_empty(bitmap_block *block);

static inline void bitmap_insert(bitmap_block *before, bitmap_block *block)
{
  block->next = before->next;
  block->previous = before;
  before->next->previous = block;
  before->next = block;
}

static inline void bitmap_remove(bitmap_block *block)
{
  block->next->previous = block->previous;
  block->previous->next = block->next;
}

static inline bitmap_block *bitmap_block_of(boxroot r)
{
  return (bitmap_block *)((uintptr_t)r & -(uintptr_t)BITMAP_BLOCK_BYTES);
}

static inline boxroot boxroot_create(value v)
{
  bitmap_block *block = bitmap_open.next;
  if (__builtin_expect(block == &bitmap_open, 0)) return bitmap_create_slow(v);
  int i = __builtin_ctzll(~block->used);
  block->used |= (uint64_t)1 << i;
  if (__builtin_expect(block->used == BITMAP_FULL, 0)) bitmap_remove(block);
  if (__builtin_expect(block->next_young == NULL, 0)) bitmap_note_young(block);
  block->cells[i] = v;
  return (boxroot)&block->cells[i];
}

static inline value boxroot_get(boxroot r) { return *(value *)r; }
static inline value const *boxroot_get_ref(boxroot r) { return (value const *)r; }

static inline void boxroot_delete(boxroot r)
{
  bitmap_block *block = bitmap_block_of(r);
  if (__builtin_expect(block->used == BITMAP_FULL, 0)) bitmap_insert(&bitmap_open, block);
  block->used &= ~((uint64_t)1 << ((value *)r - block->cells));
  if (__builtin_expect(block->used == BITMAP_EMPTY, 0)) bitmap_note_empty(block);
}

static inline bool boxroot_modify(boxroot *r, value v)
{
  bitmap_block *block = bitmap_block_of(*r);
  if (__builtin_expect(block->next_young == NULL, 0)) bitmap_note_young(block);
  *(value *)*r = v;
  return true;
}

#endif
