/* SPDX-License-Identifier: MIT */
/* The life of a pool as its roots come and go: which pool new roots are taken from, and what happens when a full one
   has room again. */
#ifndef BXR_SUPPLY_H
#define BXR_SUPPLY_H

#include "domain.h"

/* Makes a pool with a free slot the current one. False and errno == ENOMEM when there is none and no memory for one.
   Needs the lock of d. */
BXR_INTERNAL bool bxr_supply_refill(bxr_domain *d);

/* The current pool, if there is one, is not that any more: no inline creation until the next bxr_supply_refill, which
   may choose the same pool. Needs the lock of d. */
BXR_INTERNAL void bxr_supply_retire(bxr_domain *d);

#endif
