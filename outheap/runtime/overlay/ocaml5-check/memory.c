/* SPDX-License-Identifier: MIT */
/* Blocks of the major heap. The text of one function is changed by memory.edits.

   Stock   leaves the fields of a new block as they were.
   Here    they lead to where nothing is. */
#include "prelude.h"
#include "trap.h"

#include "../ocaml5/memory.c"
