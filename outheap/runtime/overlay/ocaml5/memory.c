/* SPDX-License-Identifier: MIT */
/* Stores to blocks. The texts of four functions are changed by memory.edits.

   Stock   a store to a block that is not young darkens what was there, and remembers the word if a young value is
           stored.
   Here    so does a store to a region. After it one comparison tells whether the word may lie in a tracked one
           (region.h); then its bit is set.
   Also    what a domain remembers of a region can be forgotten, before the region's memory goes away. */
#include "prelude.h"
#include "tracked.h"

#include <memory.c>

void oh_tracked_forget(uintptr_t begin, uintptr_t end)
{
  struct caml_ref_table *t = &Caml_state->minor_tables->major_ref;
  value **to = t->base;
  for (value **from = t->base; from < t->ptr; from++)
    if ((uintptr_t)*from - begin >= end - begin) *to++ = *from;
  t->ptr = to;
}

void oh_tracked_darken(uintptr_t v) { caml_darken(Caml_state, (value)v, NULL); }
