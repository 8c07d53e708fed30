/* SPDX-License-Identifier: MIT */
#include "self.h"

#if BOXROOT_THREAD_UNSAFE
void *bxr_only_domain;
#endif

#if !BXR_OCAML5
/* == Caml_state, the only one: this thread has the token. Written by the thread, or by a thread that revokes the
   token. */
#if BOXROOT_THREAD_UNSAFE
BXR_INTERNAL_DATA_HERE BXR_THREAD_LOCAL void *bxr_lock;
#else
BXR_THREAD_LOCAL void *bxr_lock;
#endif
#endif

BXR_INTERNAL_DATA_HERE bxr_pool_head bxr_self_no_pool = {
  .owner = BXR_NOBODY, .maker = BXR_NOBODY, .young_owner = BXR_NOBODY, .free = BXR_FREE_END
};
#if BXR_OCAML5
BXR_THREAD_LOCAL
#endif
bxr_pool_head *bxr_cache = &bxr_self_no_pool;
