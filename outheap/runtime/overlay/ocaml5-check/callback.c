/* SPDX-License-Identifier: MIT */
/* Callbacks.

   Stock   collects in OCaml's code, if it allocates.
   Here    a callback may collect when it begins. A collection after its return would make its result old, and hide
           that C keeps it without a root. */
#include "prelude.h"
#include "trap.h"
#include <caml/callback.h>
#include <caml/domain.h>
#include <caml/interp.h>

#define caml_update_young_limit_after_c_call(domain) \
  (OH_TRAP_EVENT(CALLBACK), (caml_update_young_limit_after_c_call)(domain))

#include <callback.c>
