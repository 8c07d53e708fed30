/* SPDX-License-Identifier: MIT */
#ifndef BXR_RUNTIME_CONSERVATIVE_H
#define BXR_RUNTIME_CONSERVATIVE_H

#include "runtime.h"

#if BXR_OCAML5 && BOXROOT_CONSERVATIVE
/* The body of the scanning hook: `young_only` says that the collector wants young values only. */
BXR_INTERNAL void bxr_runtime_conservative_scan(bxr_callbacks const *callbacks, unsigned id, bool young_only,
                                                bxr_visitor const *visitor);
#endif

#endif
