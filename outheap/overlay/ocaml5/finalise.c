/* SPDX-License-Identifier: MIT */
/* Finalisers.

   Stock   reads the header of the value.
   Here    a foreign pointer cannot have a finaliser (Invalid_argument, as in OCaml 4). */
#include "prelude.h"

#undef Is_block
#define Is_block(v) oh_prelude_is_block(v)

#include <finalise.c>
