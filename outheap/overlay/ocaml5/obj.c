/* SPDX-License-Identifier: MIT */
/* Obj.tag.

   Stock   is 1002 for a pointer that is not aligned; otherwise it reads the header, through Hp_atomic_val, and takes
           the tag out of it by Tag_hd.
   Here    it is 1001 for a foreign pointer, as in OCaml 4: Hp_atomic_val leads to a header that no block has, which
           Tag_hd knows. */
#include "prelude.h"

#define NO_HEADER (~(header_t)0)
static atomic_uintnat no_header = NO_HEADER;
#undef Hp_atomic_val
#define Hp_atomic_val(v) (oh_pointer_is_value((uintptr_t)(v)) ? (atomic_uintnat *)(v) - 1 : &no_header)
#undef Tag_hd
#define Tag_hd(hd) ((hd) == NO_HEADER ? 1001 : (int)((hd) & HEADER_TAG_MASK))

#include <obj.c>
