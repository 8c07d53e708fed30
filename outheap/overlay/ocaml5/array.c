/* SPDX-License-Identifier: MIT */
/* Arrays. The texts of two functions are changed by array.edits.

   Stock   reads the header of an array's first element: is it a float?
   Here    an opaque foreign pointer is no float. */
#include "prelude.h"

#include <array.c>
