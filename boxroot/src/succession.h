/* SPDX-License-Identifier: MIT */
/* How pools change hands as a whole: a domain ends, another adopts what it left, or the library is torn down. */
#ifndef BXR_SUCCESSION_H
#define BXR_SUCCESSION_H

#include "domain.h"

/* The domain ends: its pools go to the orphanage, those that are empty to nobody. Needs its lock. Cost: a step per pool. */
BXR_INTERNAL void bxr_orphan(bxr_domain *d);

/* A pool that was just claimed goes to the orphanage, with the root that it has. Needs no lock. */
BXR_INTERNAL void bxr_orphan_pool(bxr_pool *p);

/* Whether there are pools in the orphanage. */
BXR_INTERNAL bool bxr_orphans_exist(void);

/* Takes over all pools in the orphanage. While the world is stopped, on behalf of a domain that stays. Cost: a step per pool. */
BXR_INTERNAL void bxr_adopt(bxr_domain *d);

/* Teardown: gives all memory of roots back. The roots are void afterwards. What a marker may still read is left as it is. Nobody else may use
   the library. */
BXR_INTERNAL void bxr_dissolve(bxr_domain *d);
BXR_INTERNAL void bxr_dissolve_orphans(void);

#endif
