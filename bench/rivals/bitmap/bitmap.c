/* SPDX-License-Identifier: MIT */
#define CAML_INTERNALS
#include "boxroot.h"
#include <caml/minor_gc.h>
#include <caml/roots.h>
#include <caml/version.h>
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

#if OCAML_VERSION >= 50000

static scan_roots_hook previous_hook;
typedef struct { scanning_action action; void *data; } visitor;
static void visit(visitor v, value *cell) { v.action(v.data, *cell, cell); }

#else

static void (*previous_hook)(scanning_action);
typedef struct { scanning_action action; } visitor;
static void visit(visitor v, value *cell) { v.action(*cell, cell); }

#endif

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

#if OCAML_VERSION >= 50000

static void scan(scanning_action action, scanning_action_flags flags, void *data, caml_domain_state *domain)
{
  if (previous_hook) previous_hook(action, flags, data, domain);
  if (flags & SCANNING_ONLY_YOUNG_VALUES) visit_young((visitor){action, data});
  else visit_all((visitor){action, data});
}

#else

static void scan(scanning_action action)
{
  if (previous_hook) previous_hook(action);
  if (action == &caml_oldify_one) visit_young((visitor){action});
  else visit_all((visitor){action});
}

#endif

bool boxroot_setup(void)
{
  static bool installed = false;
  if (!installed) {
    previous_hook = caml_scan_roots_hook;
    caml_scan_roots_hook = scan;
    installed = true;
  }
  return true;
}
