/* SPDX-License-Identifier: MIT */
/* Exceptions as text: a foreign argument is printed as `_`. Stock 4.14 reads its header, whatever it is. */
#include "prelude.h"

Caml_inline tag_t oh_tag(value v) { return Is_in_value_area(v) ? Tag_val(v) : Abstract_tag; }
#undef Tag_val
#define Tag_val(v) oh_tag(v)

#include <printexc.c>
