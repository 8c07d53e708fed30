/* SPDX-License-Identifier: MIT */
/* The shelf: old pools with room that domains leave for others (orphans.h), and how many of them are wanted. Any thread
   may call these functions; none of them waits for another.

   A pool is put in a free place by compare-and-swap, and taken by exchange: one at a time, so that a domain that needs
   a pool leaves the others for those that come after it. */
#ifndef BXR_SHELF_H
#define BXR_SHELF_H

#include "pool.h"

#define BXR_SHELF_PLACES 128

/* Puts p on the shelf, after which it is not the caller's any more. False if there is no place. Cost: a look at the
   places that are taken. */
BXR_INTERNAL bool bxr_shelf_put(bxr_pool *p);

/* Takes a pool; NULL if there is none. Cost: a look at the places that are free. */
BXR_INTERNAL bxr_pool *bxr_shelf_take(void);

/* Takes all, and puts them in front of `others`, linked by `next`. As many are wanted again, unless no domain has
   wanted one for some cycles. */
BXR_INTERNAL bxr_pool *bxr_shelf_take_all(bxr_pool *others);

/* A domain starts a cycle: after some of them what was wanted is forgotten. */
BXR_INTERNAL void bxr_shelf_new_cycle(void);

/* How many there are: exact while the world is stopped, otherwise at least so many. */
BXR_INTERNAL uint64_t bxr_shelf_count(void);

/* A domain needs a pool and has none with room: a hint for those that have. */
BXR_INTERNAL void bxr_shelf_want(void);

/* How many more pools are wanted than there are on the shelf, about; of these, n were put there. */
BXR_INTERNAL uint64_t bxr_shelf_wanted(void);
BXR_INTERNAL void bxr_shelf_supplied(uint64_t n);

#endif
