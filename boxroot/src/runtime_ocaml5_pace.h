/* SPDX-License-Identifier: MIT */
/* How fast the library darkens the roots of the snapshot itself (OCaml 5; docs/decisions.md, 7). */
#ifndef BXR_RUNTIME_OCAML5_PACE_H
#define BXR_RUNTIME_OCAML5_PACE_H

#include "runtime_ocaml5_state.h"

#if BXR_OCAML5 && !BOXROOT_CONSERVATIVE
/* Whether slices have a part of their own: since OCaml 5.5 they have not. */
#define BXR_RUNTIME_PACES_SLICES (BOXROOT_PACING && OCAML_VERSION < 50500)

/* At the end of each minor collection of a domain: a share of the roots becomes due, and `callbacks` is asked for a
   part of it. */
BXR_INTERNAL void bxr_runtime_pace_minor(bxr_callbacks const *callbacks);

#if BXR_RUNTIME_PACES_SLICES
/* At the beginning of each slice: asks for the rest, in the slice half-way to the next minor collection. */
BXR_INTERNAL void bxr_runtime_pace_slice(bxr_callbacks const *callbacks);
#endif
#endif

#endif
