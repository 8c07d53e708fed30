/* SPDX-License-Identifier: MIT */
/* Whether this thread holds the master lock (OCaml 4.14), as far as that can be found out. */
#ifndef BXR_RUNTIME_OCAML4_HELD_H
#define BXR_RUNTIME_OCAML4_HELD_H

#include "runtime.h"

#if !BXR_OCAML5
/* Needs nothing, but the caller claims to hold the lock. Where it cannot be known, the caller is believed. */
BXR_INTERNAL bool bxr_runtime_held(void);

/* At the first attachment, before the first use of the other. Needs the lock. */
BXR_INTERNAL void bxr_runtime_held_prepare(void);
#endif

#endif
