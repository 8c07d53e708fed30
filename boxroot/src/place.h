/* SPDX-License-Identifier: MIT */
/* The place of a pool: which list of its domain it is on, and what the inline paths may do with it. */
#ifndef BXR_PLACE_H
#define BXR_PLACE_H

#include "domain.h"

/* Moves p, which is on the list of its place (or on none), to another. */
BXR_INTERNAL void bxr_place_move(bxr_domain *d, bxr_pool *p, int place, bool front);

/* Puts p, an old pool that has free slots, at the end of the list of those that are half empty or of the others. */
BXR_INTERNAL void bxr_place_sort(bxr_domain *d, bxr_pool *p);

/* Looks at some of the others, in turn, and sorts them: deletions do not tell when a pool becomes half empty. Cost: a
   look at each, and at its free slots once per use of the pool. */
BXR_INTERNAL void bxr_place_sort_some(bxr_domain *d, int pools);

/* Sets the words that the inline paths compare, after p's place or its need of a barrier changed. Pools on the full
   lists, in the snapshot, or being visited send every deletion to the slow path. */
BXR_INTERNAL void bxr_place_publish(bxr_domain *d, bxr_pool *p);

/* Slots of p were freed: p moves to a list of pools with room if it is not on one. */
BXR_INTERNAL void bxr_place_freed(bxr_domain *d, bxr_pool *p);

#endif
