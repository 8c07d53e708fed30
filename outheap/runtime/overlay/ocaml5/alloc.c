/* SPDX-License-Identifier: MIT */
/* Blocks, strings and arrays of numbers, for C and for compiled code.

   Stock   large ones are there at once.
   Here    there is room for them before, if memory is limited (cycle.h): all these functions may collect. */
#include "prelude.h"
#include <caml/memory.h>
#include "cycle.h"

#define caml_alloc_shr(words, tag) (oh_cycle_make_room(Bsize_wsize(words)), (caml_alloc_shr)(words, tag))

#include <alloc.c>
