/* SPDX-License-Identifier: MIT */
/* The trace of bytecode in the debug runtime (OCAMLRUNPARAM=t) prints blocks; stock 4.14 also what it takes for blocks. */
#include "prelude.h"

#undef Is_block
#define Is_block(v) (((v) & 1) == 0 && Is_in_value_area(v))

#include <instrtrace.c>
