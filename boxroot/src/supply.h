/* SPDX-License-Identifier: MIT */
/* Supply: which pool new roots come from. */
#ifndef BXR_SUPPLY_H
#define BXR_SUPPLY_H

#include "domain.h"

/* Makes a pool with a free slot the current one. False and errno == ENOMEM when there is none and no memory for one.
   Needs the lock of d. */
BXR_INTERNAL bool bxr_supply_refill(bxr_domain *d);

#endif
