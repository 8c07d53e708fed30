/* SPDX-License-Identifier: MIT */
/* How fast the library darkens the roots of the snapshot itself (OCaml 5 up to 5.4; docs/decisions.md, 7). */
#ifndef BXR_RUNTIME_OCAML5_PACE_H
#define BXR_RUNTIME_OCAML5_PACE_H

#include "runtime_ocaml5_state.h"

/* Since OCaml 5.5 the collector counts what is darkened outside its slices as work, a scan of all roots at the start of
   marking too: the marker's budget is the right place for all of it. */
#define BXR_RUNTIME_PACES (BOXROOT_PACING && OCAML_VERSION < 50500)

#if BXR_OCAML5 && !BOXROOT_CONSERVATIVE && OCAML_VERSION < 50500
/* At the end of each minor collection of a domain: a share of the roots becomes due, and `callbacks` is asked for a
   part of it. */
BXR_INTERNAL void bxr_runtime_pace_minor(bxr_callbacks const *callbacks);

/* At the beginning of each slice: asks for the rest, in the slice half-way to the next minor collection. */
BXR_INTERNAL void bxr_runtime_pace_slice(bxr_callbacks const *callbacks);
#endif

#endif
