/* SPDX-License-Identifier: MIT */
/* The trace of bytecode in the debug runtime (OCAMLRUNPARAM=t).

   Stock   prints every word that is not an immediate as a block.
   Here    only what is one. */
#include "prelude.h"

#undef Is_block
#define Is_block(v) oh_prelude_is_block(v)

#include <instrtrace.c>
