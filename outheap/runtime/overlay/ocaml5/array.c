/* SPDX-License-Identifier: MIT */
/* Arrays. The texts of three functions are changed by array.edits.

   Stock   reads the header of an array's first element: is it a float?
   Here    an opaque foreign pointer is no float.
   Also    Array.fill has a barrier of its own: see memory.c. Before a large array is allocated there is room for it, if
           memory is limited; its arguments are roots there. */
#include "prelude.h"
#include <caml/memory.h>
#include "cycle.h"

#define caml_alloc_shr(words, tag) (oh_cycle_make_room(Bsize_wsize(words)), (caml_alloc_shr)(words, tag))

#include <array.c>
