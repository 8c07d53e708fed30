/* SPDX-License-Identifier: MIT */
/* How fast the library darkens the roots of the snapshot itself (OCaml 5; docs/decisions.md, 7). */
#ifndef BXR_RUNTIME_OCAML5_PACE_H
#define BXR_RUNTIME_OCAML5_PACE_H

#include "runtime_ocaml5_state.h"

#if BXR_OCAML5 && !BOXROOT_CONSERVATIVE
/* At the end of each minor collection of a domain: asks `callbacks` for the next step. */
BXR_INTERNAL void bxr_runtime_pace_step(bxr_callbacks const *callbacks);

/* Up to 5.3 the work of forced collections counts for the collector's pace afterwards; since 5.4 the pace is reset
   after them. */
#define BXR_PACE_COUNTS_FORCED_WORK (OCAML_VERSION < 50400)
#if BXR_PACE_COUNTS_FORCED_WORK
/* At the beginning of each slice. */
BXR_INTERNAL void bxr_runtime_pace_slice(bxr_callbacks const *callbacks);
#endif
#endif

#endif
