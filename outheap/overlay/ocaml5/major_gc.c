/* SPDX-License-Identifier: MIT */
/* The marker. `Is_markable(v)` is `Is_block(v) && !Is_young(v)`: the second test, two comparisons with the bounds of the minor heaps,
   becomes one load from the table, which also tells foreign pointers and static data. Ephemerons look at their keys' headers. */
#include "prelude.h"
#include <caml/major_gc.h>
#include "count.h"

#ifndef OH_STOCK_MARKING /* with it, for comparison only: the heap is ours, the test is not, and foreign pointers are followed */
#undef Is_young
#define Is_young(v) (!oh_marks((uintptr_t)(v)))
#endif
#if OH_COUNT
#undef Is_block
#define Is_block(v) oh_count_block(v)
#undef Is_young
#define Is_young(v) (!oh_count_marks(v))
#endif

/* Of keys of ephemerons: a foreign key is alive. */
#undef Tag_val
#define Tag_val(v) oh_tag_(v)
Caml_inline tag_t oh_tag_(value v) { return Tag_hd(oh_is_value((uintptr_t)v) ? Hd_val(v) : Make_header(1, Lazy_tag, NOT_MARKABLE)); }
#define is_unmarked(v) (oh_is_value((uintptr_t)(v)) && (is_unmarked)(v))

#include <major_gc.c>
