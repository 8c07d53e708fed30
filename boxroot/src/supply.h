/* SPDX-License-Identifier: MIT */
/* Supply: which pool new roots come from. */
#ifndef BXR_SUPPLY_H
#define BXR_SUPPLY_H

#include "domain.h"

/* Makes a pool with a free slot the current one. False and errno == ENOMEM when there is none and no memory for one.
   Needs the lock of d. */
BXR_INTERNAL bool bxr_supply_refill(bxr_domain *d);

/* Makes the current pool, if there is one, a pool like others: no root is made inline until the next bxr_supply_refill,
   which may choose the same pool. Needs the lock of d. */
BXR_INTERNAL void bxr_supply_retire(bxr_domain *d);

#endif
