/* SPDX-License-Identifier: MIT */
/* The words that tell which domain's lock a thread holds, where the library keeps them itself (bxr_self in
   boxroot/inline.h); and the pool that the inline paths of creation look at. */
#ifndef BXR_SELF_H
#define BXR_SELF_H

#include "base.h"

/* A pool without slots, for `bxr_cache`. */
BXR_INTERNAL_DATA bxr_pool_head bxr_self_no_pool;

#if !BXR_OCAML5 && BOXROOT_THREAD_UNSAFE
#define bxr_lock bxr_self_lock /* not compared, but kept */
BXR_INTERNAL_DATA BXR_THREAD_LOCAL void *bxr_lock;
#endif

#endif
