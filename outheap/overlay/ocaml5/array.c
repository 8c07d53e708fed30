/* SPDX-License-Identifier: MIT */
/* Arrays.

   Stock   reads the header of the first element: is it a float?
   Here    a foreign pointer is no float. */
#include "prelude.h"

#undef Is_block
#define Is_block(v) oh_prelude_is_block(v)
#undef Is_long
#define Is_long(v) (!oh_prelude_is_block(v))

#include <array.c>
