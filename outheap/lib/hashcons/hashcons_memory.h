/* SPDX-License-Identifier: MIT */
/* Memory for cells: chunks of 256 MiB of address space, cut into pages of 64 KiB. A page has cells of one size, or is a
   part of one large cell. Chunks stay; the memory of pages that hold no cell goes back.

     words = 0  <=>  the page holds no cell           used <= fresh <= capacity
     cells of a page: used ones, those of its list `free`, and those from number `fresh` on, which were never used
     in the list of its size  <=>  small, and used < capacity

   All functions: with the lock. */
#ifndef OUTHEAP_HASHCONS_MEMORY_H
#define OUTHEAP_HASHCONS_MEMORY_H

#include "hashcons_notes.h"

#define OUTHEAP_HASHCONS_PAGE ((size_t)1 << 16)
#define OUTHEAP_HASHCONS_MAPS (2 * OUTHEAP_MARKER_MAP)
enum { OUTHEAP_HASHCONS_PAGES = (OUTHEAP_REGION_CHUNK - (8 << 20)) >> 16, OUTHEAP_HASHCONS_CHUNKS = 4096 };
_Static_assert(OUTHEAP_HASHCONS_MAPS == 8 << 20, "pages of a chunk");

struct outheap_hashcons_page {
  struct outheap_hashcons_page *next, *previous; /* in the list of its size, or one of free pages */
  uint64_t *free;
  uint32_t words; /* of a cell */
  uint32_t used, fresh, capacity;
  uint32_t back; /* pages to the first one of a large cell */
  bool listed, dirty; /* dirty: free, and may be resident */
};

struct outheap_hashcons_chunk {
  char *base;
  uint32_t begun, mapped; /* pages that were used, and that are mapped */
  struct outheap_hashcons_page page[OUTHEAP_HASHCONS_PAGES];
};

struct outheap_hashcons_memory {
  struct outheap_hashcons_chunk *chunk[OUTHEAP_HASHCONS_CHUNKS];
  size_t chunks, cells, words; /* words: of cells, with what their sizes leave unused */
  size_t freed;                /* cells, since the program began */
  size_t dirty;                /* pages */
};
extern struct outheap_hashcons_memory outheap_hashcons_memory;
extern uint16_t outheap_hashcons_memory_numbers[1 << 20]; /* of each chunk of the address space: 1 + ours, or 0 */

/* Does this address, any 64-bit pattern, belong to a chunk of cells? Without the lock: if it is a value that the caller
   holds. */
static inline bool outheap_hashcons_memory_has(uintptr_t a)
{
  return a >> 48 == 0 && __atomic_load_n(&outheap_hashcons_memory_numbers[a >> 28], __ATOMIC_RELAXED) != 0;
}

static inline struct outheap_hashcons_page *outheap_hashcons_memory_page(uintptr_t a)
{
  struct outheap_hashcons_chunk *c = outheap_hashcons_memory.chunk[outheap_hashcons_memory_numbers[a >> 28] - 1];
  return &c->page[(a - (uintptr_t)c->base - OUTHEAP_HASHCONS_MAPS) / OUTHEAP_HASHCONS_PAGE];
}

enum { OUTHEAP_HASHCONS_LARGEST = 1024 }; /* words of a small cell */

/* The place of a cell that an address of a chunk lies in; NULL: none. Does not look at it: it may be free. */
static inline outheap_hashcons_cell *outheap_hashcons_memory_place(uintptr_t a)
{
  uintptr_t in = a % OUTHEAP_HASHCONS_CHUNK;
  if (in < OUTHEAP_HASHCONS_MAPS) return NULL;
  struct outheap_hashcons_page *p = outheap_hashcons_memory_page(a);
  uintptr_t start = a - in % OUTHEAP_HASHCONS_PAGE;
  if (p->words > OUTHEAP_HASHCONS_LARGEST) return (uint64_t *)(start - p->back * OUTHEAP_HASHCONS_PAGE);
  if (p->words == 0) return NULL;
  uint32_t n = (uint32_t)(in % OUTHEAP_HASHCONS_PAGE / OUTHEAP_HASHCONS_WORD) / p->words;
  return n >= p->fresh ? NULL : (uint64_t *)start + (size_t)n * p->words;
}

/* Is there a cell in use at this place? */
static inline bool outheap_hashcons_memory_is_used(outheap_hashcons_cell *c)
{
  return *c == OUTHEAP_HASHCONS_HEADER;
}

/* The cell in use that an address of a chunk lies in; NULL: none. */
static inline outheap_hashcons_cell *outheap_hashcons_memory_cell(uintptr_t a)
{
  outheap_hashcons_cell *c = outheap_hashcons_memory_place(a);
  return c != NULL && outheap_hashcons_memory_is_used(c) ? c : NULL;
}

/* A cell of at least so many words, whose contents are not defined; NULL: no memory, or more than a chunk can hold. */
outheap_hashcons_cell *outheap_hashcons_memory_alloc(size_t words);
void outheap_hashcons_memory_free(outheap_hashcons_cell *);

/* Returns memory of free pages, but for `keep` of them. */
void outheap_hashcons_memory_trim(size_t keep);

#endif
