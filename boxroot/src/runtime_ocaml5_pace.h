/* SPDX-License-Identifier: MIT */
/* How fast the library darkens the roots of the snapshot itself (OCaml 5; docs/decisions.md, 7). */
#ifndef BXR_RUNTIME_OCAML5_PACE_H
#define BXR_RUNTIME_OCAML5_PACE_H

#include "runtime_ocaml5_state.h"

#if BXR_OCAML5 && !BOXROOT_CONSERVATIVE
/* At the end of each minor collection of a domain: a share of the roots becomes due, and `callbacks` is asked for a
   part of it. */
BXR_INTERNAL void bxr_runtime_pace_minor(bxr_callbacks const *callbacks);

/* At the beginning of each slice: asks for the rest, in the slice half-way to the next minor collection. */
BXR_INTERNAL void bxr_runtime_pace_slice(bxr_callbacks const *callbacks);
#endif

#endif
