/* SPDX-License-Identifier: MIT */
/* Finalisers. The text of a function is changed by finalise.edits.

   Stock   reads the header of the value when the finaliser is set, and in each major collection.
   Here    an opaque foreign pointer cannot have a finaliser (Invalid_argument, as in OCaml 4). In a collection only the
           headers of the major heap are read: memory that was declared when the finaliser was set may be withdrawn and
           unmapped since. */
#include "prelude.h"

#undef Tag_val
#define Tag_val(v) oh_prelude_tag_for_operation(v)
#define is_unmarked(v) (oh_pointer_is_markable((uintptr_t)(v)) && (is_unmarked)(v))

#include <finalise.c>
