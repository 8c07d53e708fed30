/* SPDX-License-Identifier: MIT */
/* Minor collection. The texts of two functions are changed by minor_gc.edits.

   Stock   uses the same addresses again.
   Here    the minor heap moves to others (trap.h). */
#include "prelude.h"
#include "trap.h"

#include "../ocaml5/minor_gc.c"
