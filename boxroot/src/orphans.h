/* SPDX-License-Identifier: MIT */
/* Pools that belong to no domain while they hold roots, until a domain adopts them: those of domains that have ended,
   and those that a domain has offered, since they have more room than it needs. The former may hold young values, so
   the next collection's first domain adopts them. The latter are adopted by a domain that needs a pool, or when all
   roots are visited.

   Invariant: an offered pool holds no young value and is in no snapshot whose marker is still to read it; its `place`
   is BXR_PLACE_OLD_ROOMY. `adopted` of a pool here says whether the marker of a domain that ended may read it. */
#ifndef BXR_ORPHANS_H
#define BXR_ORPHANS_H

#include "domain.h"

/* The home of orphans. */
BXR_INTERNAL_DATA bxr_domain bxr_orphans_home;

/* The domain ends: its pools are orphaned, and the empty ones returned to the depot. Needs its lock. Cost: a step per
   pool. */
BXR_INTERNAL void bxr_orphans_add_domain(bxr_domain *d);

/* A pool that was just claimed is orphaned, with the root that it has. Needs no lock. */
BXR_INTERNAL void bxr_orphans_add_pool(bxr_pool *p);

/* Whether there are pools of ended domains, or any. */
BXR_INTERNAL bool bxr_orphans_exist(bool offered_too);

/* About how many these are altogether. */
BXR_INTERNAL uint64_t bxr_orphans_count(void);

/* Adopts them. While the world is stopped, on behalf of a domain that stays. Cost: a step per pool. */
BXR_INTERNAL void bxr_orphans_adopt(bxr_domain *d, bool offered_too);

/* Adopts a pool that is offered, between two collections: for a domain that needs one. Needs its lock. False if it gets
   none. */
BXR_INTERNAL bool bxr_orphans_adopt_offered(bxr_domain *d);

/* Gives away pools for which d has no use, as many as other domains want: offers old ones that are at most half full,
   and returns idle ones to the depot; but not as many as it needed itself between the last two minor collections. At
   the end of a minor scan of d while there are other domains, and when its roots have been shown to the marker. Not
   with a runtime that is not known: who visits all roots may have passed the domain that adopts them. Cost: a look at
   some pools, and at each value of two. */
BXR_INTERNAL void bxr_orphans_offer(bxr_domain *d);

/* Takes them off the list, linked by `next`. */
BXR_INTERNAL bxr_pool *bxr_orphans_take_all(void);

#endif
