/* SPDX-License-Identifier: MIT */
/* Regions: the unit in which address space for pools is obtained from the system. A region is 64 pools long and aligned
   on its size. Its first pool's worth of memory holds the region's header and, for each of the other 63 pools, a bitmap
   of pending deletions; those pages stay untouched, and cost nothing, in programs that never defer a deletion.

   The address space of a region is never returned, and a pool's header stays where it is: a thread that still looks at
   a pool that changed hands, or whose memory was purged, reads a valid, if outdated, word.

   Invariants: bit 0 of `unused` is clear; a pool of bit 1 in `unused` is empty, has no pending deletion, and has no
   owner; the bitmap of pending deletions of a pool that changes hands while it is empty is zero. */
#ifndef BXR_REGION_H
#define BXR_REGION_H

#include "pool.h"

typedef struct bxr_region {
  uint64_t unused; /* bit i: pool i is in the depot (atomic) */
  uint64_t dirty;  /* bit i: pool i may have memory. Changed by the owner of the pool (atomic) */
  uint64_t number; /* in the depot's directory */
  uint64_t pad[5];
  uint64_t pending[]; /* for pool i: BXR_PENDING_WORDS words from (i - 1) * BXR_PENDING_WORDS (atomic) */
} bxr_region;

#define BXR_REGION_SIZE (BXR_POOL_SIZE * 64)
#define BXR_PENDING_WORDS (BXR_POOL_SIZE / sizeof(uintptr_t) / 64)
_Static_assert(sizeof(bxr_region) == 64, "the header is one cache line");
_Static_assert(sizeof(bxr_region) + 63 * BXR_PENDING_WORDS * 8 <= BXR_POOL_SIZE, "header and bitmaps fit");

#define bxr_region_of(p) ((bxr_region *)((uintptr_t)(p) & ~(BXR_REGION_SIZE - 1)))
#define bxr_region_index(p) ((unsigned)(((uintptr_t)(p) / BXR_POOL_SIZE) & 63))
#define bxr_region_pool(r, i) ((bxr_pool *)((uintptr_t)(r) + (i) * BXR_POOL_SIZE))
static inline uint64_t *bxr_region_pending_words(bxr_pool *p)
{
  return bxr_region_of(p)->pending + (bxr_region_index(p) - 1) * BXR_PENDING_WORDS;
}

#endif
