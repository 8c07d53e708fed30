/* SPDX-License-Identifier: MIT */
/* Orphans: the pools of domains that have ended, until another domain adopts them. */
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

/* Whether there are orphans. */
BXR_INTERNAL bool bxr_orphans_exist(void);

/* Adopts all orphans. While the world is stopped, on behalf of a domain that stays. Cost: a step per pool. */
BXR_INTERNAL void bxr_orphans_adopt(bxr_domain *d);

/* Takes them off the list, linked by `next`. */
BXR_INTERNAL bxr_pool *bxr_orphans_take_all(void);

#endif
