/* SPDX-License-Identifier: MIT */
/* Parsers of ocamlyacc. The text of a function is changed by parsing.edits.

   Stock   the trace (OCAMLRUNPARAM=p) reads the header of a token's argument to print it.
   Here    an opaque foreign argument is printed as `_`. */
#include "prelude.h"

#include <parsing.c>
