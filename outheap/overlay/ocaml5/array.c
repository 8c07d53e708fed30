/* SPDX-License-Identifier: MIT */
/* Arrays: is the first element a float? A foreign pointer is not. */
#include "prelude.h"

#undef Is_block
#define Is_block(v) oh_is_block(v)
#undef Is_long
#define Is_long(v) (!oh_is_block(v))

#include <array.c>
