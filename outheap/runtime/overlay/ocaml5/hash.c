/* SPDX-License-Identifier: MIT */
/* Polymorphic hashing.

   Stock   reads the header of every word that is not an immediate.
   Here    an opaque foreign pointer is hashed as the number that its bits are. */
#include "prelude.h"

#undef Is_long
#define Is_long(v) (!oh_prelude_is_block(v))

#include <hash.c>
