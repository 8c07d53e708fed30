/* SPDX-License-Identifier: MIT */
/* Threads that OCaml made (4.14): they release the master lock at their end without passing the hooks, and destructors
   of thread-local data run after that, with the token. Deletions by inline paths are harmless then, as nobody touches
   pools meanwhile (runtime_ocaml4_token.h); but no root must be made. So these threads make roots on slow paths only,
   which look at what the runtime did at the thread's end: it left no frames of OCaml code, unless it was Thread.exit,
   and it took away the alternate stack for signals that it had set up (native code).

   What is not found out: where bytecode threads called Thread.exit, until another thread takes the lock; likewise on a
   thread that began before the library's first use, and neither used it nor passed a blocking section since. */
#ifndef BXR_RUNTIME_OCAML4_ORIGIN_H
#define BXR_RUNTIME_OCAML4_ORIGIN_H

#include "runtime.h"

#if !BXR_OCAML5
/* This thread has just got the lock, by way of the hooks: whose thread is it? */
BXR_INTERNAL void bxr_runtime_origin_note(void);

/* Whether OCaml made this thread, as far as is known. Cost: a load, and more at first. */
BXR_INTERNAL bool bxr_runtime_origin_is_ocaml(void);

/* Whether it did, and the thread has ended since, as far as OCaml is concerned. For a thread that seems to have the
   lock. Cost: some loads; a system call when it is called from another place in OCaml code than before. */
BXR_INTERNAL bool bxr_runtime_origin_has_ended(void);
#endif

#endif
