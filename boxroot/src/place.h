/* SPDX-License-Identifier: MIT */
/* The place of a pool: which list of its domain it is on, and what the inline paths may do with it. */
#ifndef BXR_PLACE_H
#define BXR_PLACE_H

#include "domain.h"

/* Moves p, which is on the list of its place (or on none), to another. */
BXR_INTERNAL void bxr_place_move(bxr_domain *d, bxr_pool *p, int place, bool front);

/* Sets the words that the inline paths compare, after p's place or its need of a barrier changed. Pools on the full
   lists, in the snapshot, or being visited send every deletion to the slow path. */
BXR_INTERNAL void bxr_place_publish(bxr_domain *d, bxr_pool *p);

/* Slots of p were freed: p moves to a list of pools with room if it is not on one. */
BXR_INTERNAL void bxr_place_freed(bxr_domain *d, bxr_pool *p);

#endif
