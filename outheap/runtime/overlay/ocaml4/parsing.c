/* SPDX-License-Identifier: MIT */
/* Parsers of ocamlyacc.

   Stock   the trace (OCAMLRUNPARAM=p) prints the value of a token, and reads its header even if it is foreign.
   Here    an opaque foreign pointer is like an abstract block. */
#include "prelude.h"

#undef Tag_val
#define Tag_val(v) oh_prelude_tag(v)

#include <parsing.c>
