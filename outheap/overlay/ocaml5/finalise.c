/* SPDX-License-Identifier: MIT */
/* Finalisers: a foreign pointer cannot have one (Invalid_argument, as with OCaml 4). */
#include "prelude.h"

#undef Is_block
#define Is_block(v) oh_is_block(v)

#include <finalise.c>
