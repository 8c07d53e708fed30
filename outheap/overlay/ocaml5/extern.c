/* SPDX-License-Identifier: MIT */
/* Marshalling refuses foreign pointers as it does abstract blocks (Invalid_argument). Obj.reachable_words passes over them: that function
   and the marshaller test `Is_long` in one place each, and are told apart by their names. */
#include "prelude.h"

#undef Is_long
#define Is_long(v) (((v) & 1) != 0 || (__func__[0] == 'c' && !oh_is_value((uintptr_t)(v))))
#define Hd_val(v) oh_header(v)
#undef Tag_val
#define Tag_val(v) oh_tag_of(v)
Caml_inline tag_t oh_tag_of(value v) { return oh_is_value((uintptr_t)v) ? Tag_hd((Hd_val)(v)) : Lazy_tag; }

#include <extern.c>
