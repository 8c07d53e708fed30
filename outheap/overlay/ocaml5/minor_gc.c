/* SPDX-License-Identifier: MIT */
/* Minor collection. The one place that looks at a header which need not be young's is the case of a young Forward block: its tag test is
   applied to an expression that starts with `get_header_val(f)`; the other use of Tag_val (5.3 only) is of a young `v`. */
#include "prelude.h"

#undef Tag_val
#define Tag_val(x) oh_tag_of(OH_TAG_##x)
#define OH_TAG_get_header_val(f) (oh_is_value((uintptr_t)(f)) ? get_header_val(f) : 1)
#define OH_TAG_v v
Caml_inline tag_t oh_tag_of(value v) { return oh_is_value((uintptr_t)v) ? Tag_hd(Hd_val(v)) : Lazy_tag; }

#ifdef DEBUG /* assertions, which are outside of the functions oldify_…, read the headers of all that remembered slots hold */
#undef Is_block
#define Is_block(v) (((v) & 1) == 0 && (__func__[0] == 'o' || oh_is_value((uintptr_t)(v))))
#endif

#include <minor_gc.c>
