/* SPDX-License-Identifier: MIT */
/* How fast the library darkens the roots of the snapshot itself (OCaml 5; docs/decisions.md, 7). */
#ifndef BXR_RUNTIME_OCAML5_PACE_H
#define BXR_RUNTIME_OCAML5_PACE_H

#include "runtime_ocaml5_state.h"

#if BXR_OCAML5 && !BOXROOT_CONSERVATIVE
/* At the end of each minor collection of a domain: a share of the roots becomes due. */
BXR_INTERNAL void bxr_runtime_pace_minor(bxr_callbacks const *callbacks);

/* At the beginning of each slice: asks `callbacks` for what is due, in the slice half-way to the next minor
   collection. */
BXR_INTERNAL void bxr_runtime_pace_slice(bxr_callbacks const *callbacks);
#endif

#endif
