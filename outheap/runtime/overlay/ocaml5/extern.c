/* SPDX-License-Identifier: MIT */
/* Marshalling, and Obj.reachable_words. Their texts are changed by extern.edits.

   Stock   reads the header of every word that is not an immediate.
   Here    marshalling refuses an opaque foreign pointer as it refuses an abstract block (Invalid_argument), and
           Obj.reachable_words passes over it. */
#include "prelude.h"

#include <extern.c>
