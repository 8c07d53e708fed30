/* SPDX-License-Identifier: MIT */
/* Which slots hold roots: found from what the slots themselves hold, since the inline paths count nothing. Any thread
   may ask at any time, with or without a lock. The answer is exact for pools that nobody uses meanwhile. Of others,
   what is created or deleted meanwhile may be counted or not; so may up to 64 deletions that another domain, or a
   caller without its lock, is about to record (delete.h). */
#ifndef BXR_CENSUS_H
#define BXR_CENSUS_H

#include "records.h"

typedef struct bxr_census {
  bxr_pool *pool;
  bxr_storage *storage;             /* of its roots; NULL: none */
  uint32_t roots;                   /* that the pool holds */
  uint64_t live[BXR_PENDING_WORDS]; /* bit i: the i-th word of the pool is the first slot of one */
} bxr_census;

/* Calls f for each pool with roots. Those that the library makes for itself are among them: one for 254 weak roots, and
   for each ephemeral one. Cost: a look at each slot. */
BXR_INTERNAL void bxr_census_take(void (*f)(void *data, bxr_census const *c), void *data);

/* Once there are more than so many roots, reached(how many, data) is called, once, by a thread that makes one; 0:
   never. */
BXR_INTERNAL void bxr_census_set_cap(uint64_t roots, void (*reached)(uint64_t live, void *data), void *data);
BXR_INTERNAL_DATA uint64_t bxr_census_cap; /* (atomic) */

/* A domain has got room for further roots: looks whether the cap is reached, where there is one. */
BXR_INTERNAL void bxr_census_look(void);

#endif
