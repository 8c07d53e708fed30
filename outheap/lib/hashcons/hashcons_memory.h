/* SPDX-License-Identifier: MIT */
/* Cells, their memory, the lock of this library, and the bits that say which cells were reached. A *cell* is a piece of
   memory off the heap with one hash-consed value and all that belongs to it alone, as a sequence of blocks:

     the record { hkey; tag; node }    the node, if it is a block    blocks that were copied along    0, if there is
     room

   All headers are black; the first one is OUTHEAP_HASHCONS_HEADER, which no free cell begins with. Fields are
   immediates, or lead to a block of the same cell, to another cell, or to static data. */
#ifndef OUTHEAP_HASHCONS_MEMORY_H
#define OUTHEAP_HASHCONS_MEMORY_H

#include "region_addresses.h"
#include <outheap_marker.h>
#include <stdbool.h>

/* The stock runtime has none of these: then nothing here is called but outheap_hashcons_ml_start. */
#pragma weak outheap_marker_can_tell
#pragma weak outheap_marker_claim_cells
#pragma weak outheap_marker_use_map
#pragma weak outheap_marker_on_cycle

typedef uint64_t outheap_hashcons_cell; /* its first word */

#define OUTHEAP_HASHCONS_WORD sizeof(value)
#define OUTHEAP_HASHCONS_CHUNK OUTHEAP_REGION_CHUNK
#define OUTHEAP_HASHCONS_HEADER ((uint64_t)3 << 10 | OUTHEAP_REGION_BLACK)
enum { OUTHEAP_HASHCONS_HKEY = 1, OUTHEAP_HASHCONS_TAG = 2, OUTHEAP_HASHCONS_NODE = 3, OUTHEAP_HASHCONS_REST = 4 };

/* Returns the value of a cell. */
static inline value outheap_hashcons_cell_value(outheap_hashcons_cell *c) { return (value)(c + 1); }

/* Is there a cell in use here, where a cell can be? */
static inline bool outheap_hashcons_cell_is_used(outheap_hashcons_cell *c) { return *c == OUTHEAP_HASHCONS_HEADER; }

/* --- the lock --------------------------------------------------------------------------------------------------------
   The one lock of this library guards tables, cells, and the state of their collection. It is held for a lookup, for
   the copy of a node, or for a slice of the collection, by code that neither runs OCaml nor polls: so a stopped domain
   does not hold it, and it may be taken while all are stopped. It spins shortly, then gives the processor away. A fork
   waits for it. */

extern bool outheap_hashcons_lock_held;
void outheap_hashcons_lock_wait(void);

/* Makes forks wait for the lock. To be called once, before the first use. */
void outheap_hashcons_lock_start(void);

static inline void outheap_hashcons_lock_take(void)
{
  /* acquire: pairs with the release below */
  if (__builtin_expect(__atomic_exchange_n(&outheap_hashcons_lock_held, true, __ATOMIC_ACQUIRE), 0))
    outheap_hashcons_lock_wait();
}

static inline void outheap_hashcons_lock_give(void)
{
  __atomic_store_n(&outheap_hashcons_lock_held, false, __ATOMIC_RELEASE);
}

/* --- reach bits and marks --------------------------------------------------------------------------------------------
   Each chunk begins with two bitmaps, with a bit for each of its words (outheap_marker.h). One is *current*: markers
   set a bit in it for each pointer that they find, atomically, and so do lookups and insertions: these are reach bits.
   The other bitmap is empty while no collection of cells runs (IDLE). Between two major cycles they are exchanged, and
   the collection works on the reach bits of the last cycle:
     SCAN   each cell that was reached is marked, and what it leads to
     CLOSE  the same, with nothing left to look for
     SWEEP  cells of tables that are not marked are dead: lookups pass over them, and they are freed
     CLEAR  the bitmap is emptied
   A mark is the bit of the cell's first word, to which no pointer leads. It is valid from SCAN to SWEEP. */

enum outheap_hashcons_phase {
  OUTHEAP_HASHCONS_IDLE, OUTHEAP_HASHCONS_SCAN, OUTHEAP_HASHCONS_CLOSE, OUTHEAP_HASHCONS_SWEEP, OUTHEAP_HASHCONS_CLEAR
};

/* Both change under the lock only; the number of the current bitmap while all domains are stopped. Those who only ask
   whether there is something to do read `phase` without the lock. */
struct outheap_hashcons_reach { enum outheap_hashcons_phase phase; int current; };
extern struct outheap_hashcons_reach outheap_hashcons_reach;

static inline void outheap_hashcons_reach_enter(enum outheap_hashcons_phase p)
{
  __atomic_store_n(&outheap_hashcons_reach.phase, p, __ATOMIC_RELAXED);
}

static inline uint64_t *outheap_hashcons_reach_word(uintptr_t address, int map)
{
  uintptr_t chunk = address & ~((uintptr_t)OUTHEAP_HASHCONS_CHUNK - 1);
  return (uint64_t *)(chunk + (size_t)map * OUTHEAP_MARKER_MAP) + (address - chunk) / 512;
}

static inline uint64_t outheap_hashcons_reach_bit(uintptr_t address) { return (uint64_t)1 << address / 8 % 64; }

/* Sets the reach bit of a cell, as if the marker had found a pointer to it. */
static inline void outheap_hashcons_reach_set(outheap_hashcons_cell *c)
{
  uintptr_t a = (uintptr_t)(c + 1);
  uint64_t *w = outheap_hashcons_reach_word(a, outheap_hashcons_reach.current), bit = outheap_hashcons_reach_bit(a);
  if ((__atomic_load_n(w, __ATOMIC_RELAXED) & bit) == 0) (void)__atomic_fetch_or(w, bit, __ATOMIC_RELAXED);
}

static inline bool outheap_hashcons_mark_is_set(outheap_hashcons_cell *c)
{
  uintptr_t a = (uintptr_t)c;
  return (*outheap_hashcons_reach_word(a, !outheap_hashcons_reach.current) & outheap_hashcons_reach_bit(a)) != 0;
}

static inline void outheap_hashcons_mark_set(outheap_hashcons_cell *c)
{
  uintptr_t a = (uintptr_t)c;
  *outheap_hashcons_reach_word(a, !outheap_hashcons_reach.current) |= outheap_hashcons_reach_bit(a);
}

/* Is a cell dead: does no pointer lead there, and will none? */
static inline bool outheap_hashcons_mark_is_dead(outheap_hashcons_cell *c)
{
  return outheap_hashcons_reach.phase == OUTHEAP_HASHCONS_SWEEP && !outheap_hashcons_mark_is_set(c);
}

/* --- memory ----------------------------------------------------------------------------------------------------------
   Cells lie in chunks of 256 MiB of address space, which are cut into pages of 64 KiB. A page has cells of one size, or
   is a part of one large cell. Chunks stay; the memory of pages that hold no cell goes back to the system.

     words = 0  <=>  the page holds no cell           used <= fresh <= capacity
     cells of a page: used ones, those of its list `free`, and those from number `fresh` on, which were never used
     in the list of its size  <=>  small, and used < capacity

   The caller of any function has the lock, unless something else is said. */

#define OUTHEAP_HASHCONS_PAGE ((size_t)1 << 16)
#define OUTHEAP_HASHCONS_MAPS (2 * OUTHEAP_MARKER_MAP)
enum {
  OUTHEAP_HASHCONS_PAGES = (OUTHEAP_REGION_CHUNK - (8 << 20)) >> 16, /* of a chunk */
  OUTHEAP_HASHCONS_CHUNKS = 4096, /* at most */
  OUTHEAP_HASHCONS_LARGEST = 1024 /* words of a small cell */
};
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
/* Of each chunk of the address space: 1 + ours, or 0. */
extern uint16_t outheap_hashcons_memory_numbers[OUTHEAP_REGION_ADDRESSES / OUTHEAP_REGION_CHUNK];

/* Does this address, any 64-bit pattern, belong to a chunk of cells? A caller without the lock may ask about a value
   that it holds. */
static inline bool outheap_hashcons_memory_has(uintptr_t a)
{
  return a < OUTHEAP_REGION_ADDRESSES &&
         __atomic_load_n(&outheap_hashcons_memory_numbers[a / OUTHEAP_REGION_CHUNK], __ATOMIC_RELAXED) != 0;
}

static inline struct outheap_hashcons_page *outheap_hashcons_memory_page(uintptr_t a)
{
  uint16_t number = outheap_hashcons_memory_numbers[a / OUTHEAP_REGION_CHUNK];
  struct outheap_hashcons_chunk *c = outheap_hashcons_memory.chunk[number - 1];
  return &c->page[(a - (uintptr_t)c->base - OUTHEAP_HASHCONS_MAPS) / OUTHEAP_HASHCONS_PAGE];
}

/* Returns the beginning of the cell that an address of a chunk lies in, without a look at it: it may be free. NULL: no
   cell can be there. */
static inline outheap_hashcons_cell *outheap_hashcons_memory_slot(uintptr_t a)
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

/* Returns the cell in use that an address of a chunk lies in; NULL: there is none. */
static inline outheap_hashcons_cell *outheap_hashcons_memory_cell(uintptr_t a)
{
  outheap_hashcons_cell *c = outheap_hashcons_memory_slot(a);
  return c != NULL && outheap_hashcons_cell_is_used(c) ? c : NULL;
}

/* Allocates a cell of at least so many words, whose contents are not defined. Returns NULL if there is no memory, or if
   it is more than a chunk can hold. */
outheap_hashcons_cell *outheap_hashcons_memory_alloc(size_t words);
void outheap_hashcons_memory_free(outheap_hashcons_cell *);

/* Returns memory of free pages to the system, but for `keep` of them. */
void outheap_hashcons_memory_trim(size_t keep);

#endif
