/* SPDX-License-Identifier: MIT */
/* The marker. `Is_markable(v)` is `Is_block(v) && !Is_young(v)`: the second test, two comparisons with the bounds of the minor heaps,
   becomes one load from the table, which also tells foreign pointers and static data. Ephemerons look at their keys' headers. */
#include "prelude.h"
#include <caml/major_gc.h>
#include "count.h"

/* Whether a pointer leads to the heap is hard to predict where static data and the heap are mixed. So the loop that does the bulk of marking, which is told by its name,
   is always told yes; but a pointer to elsewhere is replaced by one to a black block, with a conditional move. The loop queues it, and then finds nothing to do, as with any block that is marked
   already, and without a cache miss. */
static struct { header_t header; value fields[7]; } const oh_black __attribute__((aligned(64))) = {Make_header(7, Abstract_tag, NOT_MARKABLE), {0}};

Caml_inline int oh_heap_or_black(value *v)
{
  uintptr_t address = (uintptr_t)*v, i = address >> OH_CHUNK_LOG;
  if (__builtin_expect(i >= OH_ENTRIES, 0)) return oh_marks(address);
  uint8_t kind = __atomic_load_n(&oh_table[i], __ATOMIC_RELAXED);
  if (OH_TAINT && __builtin_expect(kind <= OH_ASK, 0)) return oh_met(address);
  *v = __builtin_expect_with_probability(kind == OH_MAJOR, 1, 0.5) ? (value)address : (value)oh_black.fields;
  return 1;
}

#ifndef OH_STOCK_MARKING /* with it, for comparison only: the heap is ours, the test is not, and foreign pointers are followed */
#undef Is_young
#if OH_COUNT
#undef Is_block
#define Is_block(v) oh_count_block(v)
#define Is_young(v) (!oh_count_marks(v))
#elif defined(DEBUG) /* assertions ask, too */
#define Is_young(v) (!oh_marks((uintptr_t)(v)))
#else
#define Is_young(v) (__func__[0] == 'd' /* do_some_marking */ ? !oh_heap_or_black(&(v)) : !oh_marks((uintptr_t)(v)))
#endif
#endif

/* Of keys of ephemerons: a foreign key is alive. */
#undef Tag_val
#define Tag_val(v) oh_tag_(v)
Caml_inline tag_t oh_tag_(value v) { return Tag_hd(oh_is_value((uintptr_t)v) ? Hd_val(v) : Make_header(1, Lazy_tag, NOT_MARKABLE)); }
#define is_unmarked(v) (oh_is_value((uintptr_t)(v)) && (is_unmarked)(v))

#include <major_gc.c>
