/* SPDX-License-Identifier: MIT */
/* The idle pools of a domain: they have memory and are not in use. */
#ifndef BXR_IDLE_H
#define BXR_IDLE_H

#include "domain.h"

/* A pool without roots, placed nowhere; NULL and ENOMEM when there is no memory. */
BXR_INTERNAL bxr_pool *bxr_idle_obtain(bxr_domain *d);

/* Takes an empty pool off its list and out of use. */
BXR_INTERNAL void bxr_idle_release(bxr_domain *d, bxr_pool *p);

/* Takes all empty pools that no marker will read out of use, but for the current and the spare one. Cost: a look at
   each pool that has free slots, and at each of these slots once per use of the pool. */
BXR_INTERNAL void bxr_idle_release_empty(bxr_domain *d);

/* Returns n idle pools to the depot, with their memory as far as the depot keeps it; fewer if less than `keep` would be
   left. The number. */
BXR_INTERNAL uint64_t bxr_idle_give(bxr_domain *d, uint64_t n, uint64_t keep);

/* Purges some pools that a whole major cycle did not need (at most BXR_TRIM_AT_ONCE of them, to keep pauses
   short; the rest later), and returns them to the depot. bxr_idle_new_cycle counts them. bxr_idle_trim_all purges
   everything that holds no root. */
#define BXR_TRIM_AT_ONCE 16
BXR_INTERNAL void bxr_idle_trim(bxr_domain *d);
BXR_INTERNAL void bxr_idle_trim_all(bxr_domain *d);
BXR_INTERNAL void bxr_idle_new_cycle(bxr_domain *d);

#endif
