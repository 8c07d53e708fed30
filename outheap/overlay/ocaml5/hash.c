/* SPDX-License-Identifier: MIT */
/* Hashing: a foreign pointer is hashed as the number it is. */
#include "prelude.h"

#undef Is_long
#define Is_long(v) (!oh_is_block(v))

#include <hash.c>
