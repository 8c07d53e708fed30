/* SPDX-License-Identifier: MIT */
#include "runtime_end.h"
#include "atomic.h"

/* The runtime's locale for numbers: there from the start, freed and set to 0 by the shutdown, after the last finaliser
   and before the domains' states. A static variable, so it can be read at any time. (A runtime on a system without
   newlocale has none; then the end is not noticed.) */
extern void *caml_locale __attribute__((weak));

bool bxr_runtime_end_reached(void) { return &caml_locale != NULL && bxr_load_relaxed(&caml_locale) == NULL; }
