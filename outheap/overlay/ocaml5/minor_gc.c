/* SPDX-License-Identifier: MIT */
/* Minor collection. The texts of two functions are changed by minor_gc.edits.

   Stock   reads only headers of young blocks, but for two places: the target of a young Forward block, and an assertion
           of the debug runtime.
   Here    a foreign target stays behind its Forward block, and the assertion passes over foreign pointers. */
#include "prelude.h"

#include <minor_gc.c>
