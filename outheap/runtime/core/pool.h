/* SPDX-License-Identifier: MIT */
/* Pools of OCaml 5's major heap: pieces of 32 KiB, cut from large pages of OH_SPACE_POOLS.

   All records are outside of the pools, so that a pool that is not in use has no resident page. A pool is taken from
   the large page with the fewest free pieces, so that other pages become empty and can be freed whole. */
#ifndef OH_POOL_H
#define OH_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which of the free pieces: the lowest one (true), or the highest. As the runtime hands out the blocks of a new pool,
   so that what a program makes in a row lies in a row of addresses, across pools too: the processor's own prefetching
   follows it. Set before the first pool. */
extern bool oh_pool_rising;

/* A pool, aligned to its size, with unspecified contents. NULL with errno = ENOMEM. Any thread. Cost: a mutex; for
   every 64th pool a large page from the space. */
void *oh_pool_alloc(void);
void oh_pool_free(void *pool);

/* The number of pools in use in the large page of this pool (itself included), 1 … OH_POOLS_PER_PAGE; 0 for what is not
   a pool. Takes no lock; the answer may be a little old. */
unsigned oh_pool_page_used(void const *pool);

/* Compaction: records that this pool stays where it is, until oh_pool_unpin or oh_pool_trim(1); how many pools of its
   large page stay. Any thread. */
void oh_pool_pin(void const *pool);
unsigned oh_pool_pins(void const *pool);
void oh_pool_unpin(void);

/* Purges unused pools: whole large pages, and, if `thorough`, also parts of pages that are in use. Result: bytes. */
size_t oh_pool_trim(int thorough);

/* The reclaim thread looks: purges the unused pools of large pages that nothing was taken from, or freed in, since its
   last look but one; in spaces with huge pages only if three quarters of the page are unused. Result: bytes. */
size_t oh_pool_decay(void);

/* The addresses between which all pools lie that ever were. */
void oh_pool_range(uintptr_t *from, uintptr_t *to);

struct oh_pool_counters { size_t pools, pages, resident_free; };
void oh_pool_count(struct oh_pool_counters *result);
void oh_pool_validate(void);

/* For start.c. */
void oh_pool_lock(void);
void oh_pool_unlock(void);
void oh_pool_forked(void); /* in the child */

#endif
