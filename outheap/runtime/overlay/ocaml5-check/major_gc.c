/* SPDX-License-Identifier: MIT */
/* The major collector. The text of one function is changed by major_gc.edits.

   Stock   compacts where the program asks for it, and sweeps otherwise.
   Here    every cycle ends with a compaction, so what dies is never used again before it is inaccessible. */
#include "prelude.h"
#include "trap.h"

#include "../ocaml5/major_gc.c"
