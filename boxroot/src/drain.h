/* SPDX-License-Identifier: MIT */
/* Draining: the owner of a pool carries the deletions out that were recorded (delete.h), and their slots go on the free
   list.

   That is done in steps of bounded cost; the pools that become pending meanwhile have their turn after those that are.
   A pool of which the marker may have to read slots waits until the marker has finished: its values survive the cycle
   in any case, and nothing need be darkened. */
#ifndef BXR_DRAIN_H
#define BXR_DRAIN_H

#include "domain.h"

/* Whether d has pools with pending deletions. Needs the lock of d; other threads may add one at any time. */
BXR_INTERNAL bool bxr_drain_has_work(bxr_domain *d);

/* Carries out deletions that are pending at d, until they are done or have cost more than `budget`: a unit is about the
   work for a slot, some nanoseconds. What must wait for the marker is left. Needs the lock of d, and that none of its
   slots is being visited. The result is what is left of the budget. */
#define BXR_DRAIN_ALL INT64_MAX
#define BXR_DRAIN_BUDGET_IN_PAUSE 100000  /* half a millisecond */
#define BXR_DRAIN_BUDGET_IN_CREATE 6000   /* some ten microseconds */
BXR_INTERNAL int64_t bxr_drain_pending(bxr_domain *d, bxr_barrier b, int64_t budget);

/* Carries out the deletions of a pool that waits for the marker, after darkening what the pool holds. It looks for one
   that will have `worth` free slots then, among the next candidates. The result is that pool, which can be idle now; or
   NULL. Cost: a look at each candidate, and at each value of a pool. */
BXR_INTERNAL bxr_pool *bxr_drain_one_waiting(bxr_domain *d, bxr_barrier b, uint32_t worth, int candidates);

#endif
