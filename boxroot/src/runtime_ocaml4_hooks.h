/* SPDX-License-Identifier: MIT */
/* Our hooks on blocking sections (OCaml 4.14), which release and take the lock. */
#ifndef BXR_RUNTIME_OCAML4_HOOKS_H
#define BXR_RUNTIME_OCAML4_HOOKS_H

#include "runtime.h"

#if !BXR_OCAML5
/* Whether the library is attached to the runtime: a thread that passes our hooks with the lock takes the token. */
BXR_INTERNAL_DATA bool bxr_runtime_hooks_attached;

/* Puts ours in front, and takes the token. Needs the lock. */
BXR_INTERNAL void bxr_runtime_hooks_go_in_front(void);

/* Removes our hooks as far as they are in front. False when others may call some of them still. */
BXR_INTERNAL bool bxr_runtime_hooks_step_back(void);
#endif

#endif
