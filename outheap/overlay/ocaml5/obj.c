/* SPDX-License-Identifier: MIT */
/* Obj.tag. The text of a function is changed by obj.edits, for speed.

   Stock   is 1002 for a pointer that is not aligned; otherwise it reads the header, through Hp_atomic_val, and takes
           the tag out of it by Tag_hd.
   Here    it is 1001 for an opaque foreign pointer, as in OCaml 4: Hp_atomic_val leads to a header that no block has,
           which Tag_hd knows. */
#include "prelude.h"

#define NO_HEADER (~(header_t)0)
static atomic_uintnat no_header = NO_HEADER;
#undef Hp_atomic_val
#define Hp_atomic_val(v) (oh_header_exists((uintptr_t)(v)) ? (atomic_uintnat *)(v) - 1 : &no_header)
#undef Tag_hd
#define Tag_hd(hd) ((hd) == NO_HEADER ? 1001 : (int)((hd) & HEADER_TAG_MASK))

#include <obj.c>
