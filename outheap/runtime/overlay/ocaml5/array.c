/* SPDX-License-Identifier: MIT */
/* Arrays. The texts of three functions are changed by array.edits.

   Stock   reads the header of an array's first element: is it a float?
   Here    an opaque foreign pointer is no float.
   Also    Array.fill has a barrier of its own: see memory.c. */
#include "prelude.h"

#include <array.c>
