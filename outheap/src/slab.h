/* SPDX-License-Identifier: MIT */
/* Pools of OCaml 5's major heap: pieces of 32 KiB, cut from large pages of OH_SPACE_POOLS.

   All account lies outside the pools, so that a pool that nobody uses has no page resident. A pool is taken from the large page with the fewest free pieces, at its lowest address, so that
   pages empty out and can go back whole. */
#ifndef OH_SLAB_H
#define OH_SLAB_H

#include <stddef.h>

/* A pool, aligned to its size, contents undefined. NULL with errno = ENOMEM. Any thread. Cost: a mutex; for every 64th pool a large page from the space. */
void *oh_pool_take(void);
void oh_pool_give(void *pool);

/* The number of pools in use in the large page of this pool (itself included), 1 … OH_POOLS_PER_PAGE; 0 for what is not a pool. Compaction evacuates the pools
   with the lowest numbers first. Takes no lock; the answer may be a little old. */
unsigned oh_pool_page_used(void const *pool);

/* Notes that this pool stays where it is, until the next oh_pools_trim(1); the number of pools of its large page of which that was noted. Any thread. */
void oh_pool_pin(void const *pool);
unsigned oh_pool_pins(void const *pool);

/* Gives the memory of unused pools back: whole large pages, and, if `thorough`, also parts of pages that are in use. Result: bytes. */
size_t oh_pools_trim(int thorough);

struct oh_slab_counters { size_t pools, pages, resident_free; };
void oh_pools_count(struct oh_slab_counters *result);
void oh_pools_validate(void);

#endif
