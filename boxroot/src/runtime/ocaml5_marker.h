/* SPDX-License-Identifier: MIT */
/* What the hooks of OCaml 5 need of the module that knows the collector: ocaml5_marker.c, or with BOXROOT_CONSERVATIVE
   conservative.c, which knows nothing of it. */
#ifndef BXR_OCAML5_MARKER_H
#define BXR_OCAML5_MARKER_H

#include "../runtime.h"

#if BXR_OCAML5
#include <caml/domain.h>

/* The runtime's state of the current domain, read as the inline paths read it. */
static inline caml_domain_state *bxr_runtime_state(void)
{
  BXR_ASSERT(bxr_self() != NULL);
  return (caml_domain_state *)bxr_self();
}

/* The body of the scanning hook: the collector visits the roots of the domain `id`; `young_only` says that it wants
   those with young values only. */
BXR_INTERNAL void bxr_runtime_marker_scan(bxr_callbacks const *callbacks, unsigned id, bool young_only,
                                          bxr_visitor const *visitor);

#if !BOXROOT_CONSERVATIVE
/* How fast the library darkens the roots of the snapshot itself. bxr_runtime_pace_minor, at the end of each minor
   collection of a domain: makes a share of the roots due, and asks `callbacks` for a part of it.
   bxr_runtime_pace_slice, at the beginning of each slice: asks for the rest, in the slice half-way to the next minor
   collection (not since OCaml 5.5). */
#define BXR_RUNTIME_PACES_SLICES (BOXROOT_PACING && OCAML_VERSION < 50500)
BXR_INTERNAL void bxr_runtime_pace_minor(bxr_callbacks const *callbacks);
#if BXR_RUNTIME_PACES_SLICES
BXR_INTERNAL void bxr_runtime_pace_slice(bxr_callbacks const *callbacks);
#endif
#endif
#endif

#endif
