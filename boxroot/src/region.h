/* SPDX-License-Identifier: MIT */
/* Regions: the unit in which address space for pools is obtained from the system. A region is 64 pools long and aligned on its size. Its
   first pool's worth of memory holds the region's header and, for each of the other 63 pools, a bitmap of pending deletions; those
   pages stay untouched, and cost nothing, in programs that never defer a deletion.

   A pool belongs to one domain at a time, or to none; domains take pools from any region and give them back when they are empty, so that
   the number of regions follows the number of pools in use, whatever domains came and went. The address space of a region is never
   returned, and a pool's header stays where it is: a thread that still looks at a pool that changed hands, or whose memory was given
   back, reads a valid, if outdated, word.

   Nothing here relies on memory that was given back to read as zeroes: the system may refuse to take it (locked memory).

   Invariants: bit 0 of `unused` is clear; a pool of bit 1 in `unused` is empty, has no pending deletion, and nobody's;
   the bitmap of pending deletions of a pool that changes hands while it is empty is zero;
   unused != 0 => the region's bit in the directory is set, or the thread that made it != 0 is about to set it. */
#ifndef BXR_REGION_H
#define BXR_REGION_H

#include "pool.h"

typedef struct bxr_region {
  uint64_t unused; /* bit i: pool i belongs to no domain (atomic) */
  uint64_t dirty;  /* bit i: pool i may have memory. Changed by who owns the pool (atomic) */
  uint64_t number; /* in the directory */
  uint64_t pad[5];
  uint64_t pending[]; /* for pool i: BXR_PENDING_WORDS words from (i - 1) * BXR_PENDING_WORDS (atomic) */
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

/* A pool that belonged to nobody, formatted: from any region, or a new one. The caller owns it. Needs no lock.
   NULL and errno == ENOMEM on failure. Cost: some atomic operations; four system calls for a new region. */
BXR_INTERNAL bxr_pool *bxr_region_claim(void);

/* The n pools, which must be empty and are the caller's, belong to nobody any more. Their memory is given back, but for some that the
   next to claim them find still there, unless `all` is true. Sorts the array. The number whose memory was given back. Needs no lock.
   Cost: a system call for each run of neighbours. */
#define BXR_RETURN_AT_ONCE 64
BXR_INTERNAL unsigned bxr_region_return(bxr_pool **pools, unsigned n, bool all);

/* Gives the memory of all pools that belong to nobody back. Needs no lock. Cost: a step per region. */
BXR_INTERNAL void bxr_region_trim(void);

/* Address space reserved so far, in bytes. */
BXR_INTERNAL uint64_t bxr_reserved_bytes(void);

#endif
