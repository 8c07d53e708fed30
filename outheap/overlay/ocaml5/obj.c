/* SPDX-License-Identifier: MIT */
/* Obj.tag: 1001 for a foreign pointer, as with OCaml 4 (1002 if it is not aligned, which the unit tests first). The header is read through
   `Hp_atomic_val` and taken apart by `Tag_hd`. */
#include "prelude.h"

#define OH_NO_HEADER (~(header_t)0)
static atomic_uintnat oh_no_header = OH_NO_HEADER;
#undef Hp_atomic_val
#define Hp_atomic_val(v) (oh_is_value((uintptr_t)(v)) ? (atomic_uintnat *)(v) - 1 : &oh_no_header)
#undef Tag_hd
#define Tag_hd(hd) ((hd) == OH_NO_HEADER ? 1001 : (int)((hd) & HEADER_TAG_MASK))

#include <obj.c>
