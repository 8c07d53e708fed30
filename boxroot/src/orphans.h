/* SPDX-License-Identifier: MIT */
/* Orphans: pools that belong to no domain while they hold roots, until a domain adopts them. They are
   - the pools of domains that have ended, which may hold young values: the first domain whose roots are visited in the
     next collection adopts them all;
   - pools that a domain has offered to others, since they have more room than it needs. They wait on the shelf, until a
     domain that needs a pool adopts one, or all roots are visited. What finds no room on the shelf is treated as a pool
     of a domain that has ended.

   Invariant: an offered pool holds no young value and is in no snapshot whose marker is still to read it; its `list` is
   BXR_LIST_OLD_ROOMY. `other_marker` of an orphan says whether the marker of the domain that ended may still read
   it. */
#ifndef BXR_ORPHANS_H
#define BXR_ORPHANS_H

#include "domain.h"

/* The home of orphans. */
BXR_INTERNAL_DATA bxr_domain bxr_orphans_home;

/* A record of the current domain, which ends: orphans its pools, and returns the empty ones to the depot. Needs its
   lock. Cost: a step per pool. */
BXR_INTERNAL void bxr_orphans_add_domain(bxr_domain *d);

/* Orphans a pool that was just claimed, with the root that it has. Needs no lock. */
BXR_INTERNAL void bxr_orphans_add_pool(bxr_pool *p);

/* Whether there are pools of ended domains; with `offered_too`, whether there are any orphans. */
BXR_INTERNAL bool bxr_orphans_exist(bool offered_too);

/* The number of all orphans, about. */
BXR_INTERNAL uint64_t bxr_orphans_count(void);

/* Makes the pools of ended domains those of d, or of its domain's records for their storages; with `offered_too`, all
   orphans. To be called while the world is
   stopped, on behalf of a domain that stays. Cost: a step per pool. */
BXR_INTERNAL void bxr_orphans_adopt(bxr_domain *d, bool offered_too);

/* For a domain that needs a pool: adopts one that is offered, between two collections. Where other domains run, it also
   tells them that a pool is wanted. Needs the lock of d. False if it gets none. */
BXR_INTERNAL bool bxr_orphans_adopt_offered(bxr_domain *d);

/* Gives away pools for which d has no use, as many as other domains want: offers old ones that are at most half full,
   and returns idle ones to the depot; but keeps as many as it needed itself between the last two minor collections. To
   be called at the end of a minor scan of d while there are other domains, and when the marker has been given its
   roots. Does nothing with a runtime that is not known: whoever visits all roots may have passed the domain that adopts
   them. Cost: a look at some pools, and at each value of two. */
BXR_INTERNAL void bxr_orphans_offer(bxr_domain *d);

/* A domain starts a major cycle: after some of them the pools that domains wanted are forgotten. */
BXR_INTERNAL void bxr_orphans_new_cycle(void);

/* Takes all orphans, linked by `next`; they are the caller's. */
BXR_INTERNAL bxr_pool *bxr_orphans_take_all(void);

#endif
