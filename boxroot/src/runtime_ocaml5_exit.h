/* SPDX-License-Identifier: MIT */
/* The thread of a domain that ends (OCaml 5). The runtime releases the domain lock at the end of a domain, but leaves
   Caml_state set on its thread: destructors of thread-local data would run with the state of no domain, or of the next
   domain that gets the same record. So this thread resets it before other destructors run. */
#ifndef BXR_RUNTIME_OCAML5_EXIT_H
#define BXR_RUNTIME_OCAML5_EXIT_H

#include "runtime_ocaml5_state.h"

#if BXR_OCAML5
/* Before the first use of the others. */
BXR_INTERNAL void bxr_runtime_exit_prepare(void);

/* The domain of this thread has begun to terminate, while others go on. */
BXR_INTERNAL void bxr_runtime_exit_begin(void);

/* At the end of each of its last minor collections: destructors that finalisers registered meanwhile come after this
   one, too. */
BXR_INTERNAL void bxr_runtime_exit_again(void);
#endif

#endif
