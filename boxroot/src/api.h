/* SPDX-License-Identifier: MIT */
/* What the functions of the checked build (checked/checked.c) need of those of boxroot.h. */
#ifndef BXR_API_H
#define BXR_API_H

#include "base.h"

/* Whether a function that needs the domain lock may go on: the library is set up, now if need be, and this thread holds
   a lock. If not, errno and the reason are set. */
BXR_INTERNAL bool bxr_api_is_ready(void);

/* The same for a function that makes a weak root of v, or an ephemeral one with this key. */
BXR_INTERNAL bool bxr_api_may_hold_weakly(value v);

/* Creates a root in d, a record of the current domain, whose storage has not changed. NULL: errno and the reason are
   set. */
struct bxr_domain;
BXR_INTERNAL boxroot bxr_api_create_in(struct bxr_domain *d, value v);

/* Creates a wide root for n values. Needs 1 <= n <= BOXROOT_WIDEST. NULL: as above. */
BXR_INTERNAL boxroot bxr_api_create_wide(unsigned n, value const *values);

/* boxroot_modify, and for wide roots, without its fast path: slot i of *r holds v. */
BXR_INTERNAL bool bxr_api_modify_slot(boxroot *r, unsigned i, value v);

/* The value of r is about to be used: faults unless r is live and the domain lock held, or r void
   (checked/account.h). */
#if BOXROOT_DEBUG
BXR_INTERNAL void bxr_api_check_use(boxroot r);
#else
static inline void bxr_api_check_use(boxroot r) { (void)r; }
#endif

/* The record of the current domain for a storage. NULL: errno and the reason are set. */
struct bxr_storage;
BXR_INTERNAL struct bxr_domain *bxr_api_record(struct bxr_storage *s);

/* What is added to the address of a storage's record in a handle: with OCaml 4.14 the inline path must tell such
   handles from others, without reading the record. */
#define BXR_HANDLE_TAG (BXR_OCAML5 ? 0 : 1)

/* The slow paths of creation and modification. In a release build boxroot/inline.h declares them for the
   inline functions. In the checked build all calls take them, and they are internal: another copy of the library cannot
   provide its own for them. */
#if BOXROOT_DEBUG
BXR_INTERNAL boxroot bxr_create_slow(value v);
BXR_INTERNAL boxroot bxr_create_in_slow(boxroot_domain d, value v);
BXR_INTERNAL bool bxr_modify_slow(boxroot *r, value v);
#endif

#endif
