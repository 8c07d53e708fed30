/* SPDX-License-Identifier: MIT */
/* Places in bytecode. The text of one function is changed by backtrace_byt.edits.

   Stock   reads the table of places at its first use, unless OCAMLRUNPARAM asks for it earlier, and allocates values.
   Here    the program has it from the start, for reports of faults. */
#include "prelude.h"
#include "trap.h"

#include <backtrace_byt.c>
