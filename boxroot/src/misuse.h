/* SPDX-License-Identifier: MIT */
/* The checked build's way in: the public functions, which consult and keep the account of live roots (account.h). */
#ifndef BXR_MISUSE_H
#define BXR_MISUSE_H

#include "account.h"

#if BOXROOT_DEBUG
/* What the public functions are without checks. Internal in this build: another copy of the library cannot lend its own for them. */
BXR_INTERNAL boxroot bxr_create_slow(value v);
BXR_INTERNAL void bxr_delete_slow(boxroot r);
BXR_INTERNAL bool bxr_modify_slow(boxroot *r, value v);

/* The slot r was handed out for a new root, in the public call that this thread is in. */
BXR_INTERNAL void bxr_mark_live(boxroot r);

/* A modification has made the root `to`, which is live, in the place of `from`, which ends. */
BXR_INTERNAL void bxr_mark_moved(boxroot from, boxroot to);

/* The library was set up; it was torn down, and all roots are void. */
BXR_INTERNAL void bxr_misuse_setup(void);
BXR_INTERNAL void bxr_misuse_teardown(void);
#else
static inline void bxr_mark_live(boxroot r) { (void)r; }
static inline void bxr_mark_moved(boxroot from, boxroot to) { (void)from; (void)to; }
static inline void bxr_misuse_setup(void) {}
static inline void bxr_misuse_teardown(void) {}
#endif

#endif
