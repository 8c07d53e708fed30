/* SPDX-License-Identifier: MIT */
/* Regions: the unit in which pools are obtained from the system and change hands. A region is 64 pools long and aligned on its
   size. Its first pool's worth of memory holds the region's header and, for each of the other 63 pools, a bitmap of pending
   deletions; those pages stay untouched, and cost nothing, in programs that never delete a root from elsewhere.

   The address space of a region is never returned, and a pool's header stays where it is: a thread that still looks at a
   region that changed hands reads a valid, if outdated, word.

   Invariants: in_use ⊆ formatted; bit 0 of both is set; a region is on the list of its home, or of the orphanage, or in the stock. */
#ifndef BXR_REGION_H
#define BXR_REGION_H

#include "pool.h"

struct bxr_domain;

typedef struct bxr_region {
  struct bxr_domain *home;         /* the domain record that its pools belong to (atomic) */
  struct bxr_region *next, *prev;  /* of the home's list, or (next alone) of the orphans or the stock */
  uint64_t in_use;                 /* bit i: pool i has a place */
  uint64_t formatted;              /* bit i: pool i is formatted, that is, has memory */
  uint64_t pad[3];
  uint64_t pending[];              /* for pool i: BXR_PENDING_WORDS words from (i - 1) * BXR_PENDING_WORDS (atomic) */
} bxr_region;

#define BXR_REGION_SIZE (BXR_POOL_SIZE * 64)
#define BXR_PENDING_WORDS (BXR_POOL_SIZE / sizeof(uintptr_t) / 64)
_Static_assert(sizeof(bxr_region) == 64, "the header is one cache line");
_Static_assert(sizeof(bxr_region) + 63 * BXR_PENDING_WORDS * 8 <= BXR_POOL_SIZE, "header and bitmaps fit");

#define bxr_region_of(p) ((bxr_region *)((uintptr_t)(p) & ~(BXR_REGION_SIZE - 1)))
#define bxr_pool_index(p) ((unsigned)(((uintptr_t)(p) / BXR_POOL_SIZE) & 63))
#define bxr_region_pool(r, i) ((bxr_pool *)((uintptr_t)(r) + (i) * BXR_POOL_SIZE))
static inline uint64_t *bxr_pending_words(bxr_pool *p)
{
  return bxr_region_of(p)->pending + (bxr_pool_index(p) - 1) * BXR_PENDING_WORDS;
}

/* A region with no pool in use and no home: from the stock, or new. NULL and errno == ENOMEM on failure. */
bxr_region *bxr_region_obtain(void);

/* Puts a region with no pool in use into the stock, from which any domain may obtain it. Gives its memory back. */
void bxr_region_retire(bxr_region *r);

/* Takes a pool of the region that is not in use; formats it if need be. NULL when there is none. */
bxr_pool *bxr_region_take_pool(bxr_region *r);

/* The pool, which must be empty, is no longer in use; it keeps its memory. */
void bxr_region_put_pool(bxr_pool *p);

/* Gives the memory of one pool that is not in use back. False when there is none. */
bool bxr_region_decommit_one(bxr_region *r);

/* Address space reserved so far, in bytes. */
uint64_t bxr_reserved_bytes(void);

#endif
