/* SPDX-License-Identifier: MIT */
/* The checked build: a check of all invariants. */
#ifndef BXR_VALIDATE_H
#define BXR_VALIDATE_H

#include "../domain.h"

#if BOXROOT_DEBUG
/* Faults when an invariant stated in account.h, pool.h, snapshot.h or domain.h does not hold. Needs the lock of d.
   Cost: a look at every slot. */
BXR_INTERNAL void bxr_validate(bxr_domain *d);
#else
static inline void bxr_validate(bxr_domain *d) { (void)d; }
#endif

#endif
