/* SPDX-License-Identifier: MIT */
/* Exceptions as text: a foreign argument is printed as `_`. */
#include "prelude.h"

#undef Tag_val
#define Tag_val(v) oh_tag_of(v)
Caml_inline tag_t oh_tag_of(value v) { return oh_is_value((uintptr_t)v) ? Tag_hd(Hd_val(v)) : Lazy_tag; }

#include <printexc.c>
