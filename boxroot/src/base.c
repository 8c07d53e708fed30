/* SPDX-License-Identifier: MIT */
#include "base.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void bxr_fault(char const *format, ...)
{
  va_list args;
  va_start(args, format);
  fputs("boxroot: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  abort();
}

#if BOXROOT_THREAD_UNSAFE
void *bxr_only_domain;
#endif

#if !BXR_OCAML5
/* This thread has the token iff the word equals Caml_state, the only one. The thread itself writes it, or a thread that
   revokes the token (runtime/ocaml4_token.h). */
#if BOXROOT_THREAD_UNSAFE
BXR_INTERNAL_DATA_HERE BXR_THREAD_LOCAL void *bxr_lock;
#else
BXR_THREAD_LOCAL void *bxr_lock;
#endif
#endif

BXR_INTERNAL_DATA_HERE bxr_pool_head bxr_no_pool = {
  .free_owner = BXR_NOBODY, .alloc_owner = BXR_NOBODY, .store_owner = BXR_NOBODY, .free = BXR_FREE_END
};
#if BXR_OCAML5
BXR_THREAD_LOCAL
#endif
bxr_pool_head *bxr_cache = &bxr_no_pool;
