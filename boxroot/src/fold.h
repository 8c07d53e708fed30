/* SPDX-License-Identifier: MIT */
/* Folding: pending deletions (remote.h) are carried out by the owner of the pool, and their slots go on the free list.

   Folding is done in steps of bounded cost; the pools that become pending meanwhile have their turn after those that
   are. A pool of which the marker may have to read slots waits until it has finished: its values survive the cycle in
   any case, and nothing need be darkened. */
#ifndef BXR_FOLD_H
#define BXR_FOLD_H

#include "domain.h"

/* Carries out deletions that are pending at d, until they are done or cost more than `budget`: a unit is about the work
   for a slot, some nanoseconds. What must wait for the marker is left. Needs the lock of d, and that none of its slots
   is being visited. The result: what is left of the budget. */
#define BXR_FOLD_ALL INT64_MAX
#define BXR_FOLD_IN_PAUSE 100000  /* half a millisecond */
#define BXR_FOLD_IN_CREATE 6000   /* some ten microseconds */
BXR_INTERNAL int64_t bxr_fold_pending(bxr_domain *d, int64_t budget);

/* Carries out the deletions of a pool that waits for the marker, after darkening what it holds: of one that will have
   `worth` free slots then, if there is one among the next candidates. That pool, which can be idle now; or NULL. Cost:
   a look at each candidate, and at each value of a pool. */
BXR_INTERNAL bxr_pool *bxr_fold_one_waiting(bxr_domain *d, uint32_t worth, int candidates);

#endif
