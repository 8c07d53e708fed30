/* SPDX-License-Identifier: MIT */
/* The debugger of bytecode. The text of a function is changed by debugger.edits.

   Stock   reads the header and the fields of every word that the debugger asks for.
   Here    an opaque foreign pointer looks like an abstract block, and reading a field of it gives (). */
#include "prelude.h"

#include <debugger.c>
