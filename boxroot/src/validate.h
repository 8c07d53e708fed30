/* SPDX-License-Identifier: MIT */
/* Checks of the checked build. */
#ifndef BXR_VALIDATE_H
#define BXR_VALIDATE_H

#include "domain.h"

#if BOXROOT_DEBUG
/* Faults when an invariant stated in pool.h or domain.h does not hold. Needs the lock of d. Cost: looks at every slot. */
BXR_INTERNAL void bxr_validate(bxr_domain *d);

/* Faults unless r is a live root; `what` is the function that was given it. */
void bxr_check_live(boxroot r, char const *what);

/* Keep the account of live slots. bxr_mark_dead faults when r was not live. */
BXR_INTERNAL void bxr_mark_live(boxroot r);
BXR_INTERNAL void bxr_mark_dead(boxroot r);

/* No slot of the pool is a live root any more. */
BXR_INTERNAL void bxr_forget_roots(bxr_pool *p);
#else
static inline void bxr_validate(bxr_domain *d) { (void)d; }
static inline void bxr_mark_live(boxroot r) { (void)r; }
static inline void bxr_mark_dead(boxroot r) { (void)r; }
static inline void bxr_forget_roots(bxr_pool *p) { (void)p; }
#endif

#endif
