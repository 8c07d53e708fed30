/* SPDX-License-Identifier: MIT */
/* The thread of a domain that ends (OCaml 5). The runtime releases the domain lock at the end of a domain, but leaves
   Caml_state set on its thread: destructors of thread-local data would run with the state of no domain, or of the next
   domain that gets the same record. So this thread resets it before other destructors run.

   The hook that arranges this is in place before OCaml starts, if the library is in the program then. A library that
   is loaded later puts it in place at its first use; a domain that ended before leaves a *stray*: a thread that takes
   itself for one of the domain that has its record now. Slow paths recognise a stray by what the runtime takes away
   from its threads at their end, and reset its pointer. Inline paths cannot, so a domain whose record was used before
   keeps its pools closed for them while there may be strays (bxr_runtime_strays_here). */
#ifndef BXR_RUNTIME_OCAML5_EXIT_H
#define BXR_RUNTIME_OCAML5_EXIT_H

#include "runtime_ocaml5_state.h"

#if BXR_OCAML5
/* Before the first use of the others. */
BXR_INTERNAL void bxr_runtime_exit_prepare(void);

/* The hook for the end of a domain was put in place: before OCaml started, or now, by a thread with a domain lock. It
   is not there any more. */
BXR_INTERNAL void bxr_runtime_exit_watch_from_the_start(void);
BXR_INTERNAL void bxr_runtime_exit_watch(void);
BXR_INTERNAL void bxr_runtime_exit_unwatch(void);

/* The library is being unloaded. */
BXR_INTERNAL void bxr_runtime_exit_unload(void);

/* The domain of this thread has begun to terminate, while others go on. */
BXR_INTERNAL void bxr_runtime_exit_begin(void);

/* At the end of each of its last minor collections: destructors that finalisers registered meanwhile come after this
   one, too. */
BXR_INTERNAL void bxr_runtime_exit_again(void);
#endif

#endif
