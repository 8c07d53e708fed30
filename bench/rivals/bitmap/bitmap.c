/* SPDX-License-Identifier: MIT */
#define CAML_INTERNALS
#include "boxroot.h"
#include "scanning.h"
#include <stdlib.h>

_Static_assert(sizeof(bitmap_block) == BITMAP_BLOCK_BYTES, "a block is as large as its alignment");

enum { CHUNK_BLOCKS = 128 }; /* of which the first is taken up by the chunk's header */

typedef struct chunk {
  struct chunk *next;
  char padding[BITMAP_BLOCK_BYTES - sizeof(struct chunk *)];
  bitmap_block blocks[CHUNK_BLOCKS - 1];
} chunk;

bitmap_block bitmap_open = {{.used = BITMAP_FULL, .next = &bitmap_open, .previous = &bitmap_open}};
static chunk *chunks;
static bitmap_block end_of_list, *young = &end_of_list;

void bitmap_note_young(bitmap_block *block)
{
  block->next_young = young;
  young = block;
}

/* To the end of the ring, so that new roots go to blocks that are in use anyway. */
void bitmap_note_empty(bitmap_block *block)
{
  bitmap_remove(block);
  bitmap_insert(bitmap_open.previous, block);
}

boxroot bitmap_create_slow(value v)
{
  chunk *c = aligned_alloc(BITMAP_BLOCK_BYTES, sizeof *c);
  if (!c) return NULL;
  c->next = chunks;
  chunks = c;
  for (int i = 0; i < CHUNK_BLOCKS - 1; i++) {
    c->blocks[i].used = BITMAP_EMPTY;
    c->blocks[i].next_young = NULL;
    bitmap_insert(bitmap_open.previous, &c->blocks[i]);
  }
  return boxroot_create(v);
}

static void visit_block(visitor v, bitmap_block *block)
{
  for (uint64_t left = block->used & ~BITMAP_EMPTY; left; left &= left - 1)
    visit(v, &block->cells[__builtin_ctzll(left)]);
}

static void visit_young(visitor v)
{
  while (young != &end_of_list) {
    bitmap_block *block = young;
    visit_block(v, block);
    young = block->next_young;
    block->next_young = NULL;
  }
}

static void visit_all(visitor v)
{
  for (chunk *c = chunks; c; c = c->next)
    for (int i = 0; i < CHUNK_BLOCKS - 1; i++) visit_block(v, &c->blocks[i]);
}

static void scan_roots(visitor v, bool only_young)
{
  if (only_young) visit_young(v);
  else visit_all(v);
}
