/* SPDX-License-Identifier: MIT */
/* The runtime's state of the current domain, read as the inline paths read it (OCaml 5). */
#ifndef BXR_RUNTIME_OCAML5_STATE_H
#define BXR_RUNTIME_OCAML5_STATE_H

#include "runtime.h"

#if BXR_OCAML5
#include <caml/domain.h>

static inline caml_domain_state *bxr_runtime_state(void) { return (caml_domain_state *)bxr_self(); }
#endif

#endif
