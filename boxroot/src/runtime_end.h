/* SPDX-License-Identifier: MIT */
/* OCaml's shutdown. Afterwards the thread that asked for it still counts as holder of its domain's lock, but the
   domain's state is gone: with pooled allocation (caml_startup_pooled, or "c" in OCAMLRUNPARAM) it has been freed. */
#ifndef BXR_RUNTIME_END_H
#define BXR_RUNTIME_END_H

#include "runtime.h"

/* Whether OCaml has shut down, that is, no code of OCaml and no finaliser runs any more; or has not started. Needs no
   lock: nothing that the shutdown frees is read. Cost: a load. */
BXR_INTERNAL bool bxr_runtime_end_reached(void);

#endif
