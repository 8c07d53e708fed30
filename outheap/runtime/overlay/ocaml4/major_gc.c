/* SPDX-License-Identifier: MIT */
/* The marker. The text of do_some_marking is changed by major_gc.edits.

   Stock   asks of each word first whether it is a block that is not young, by its rotated distance from the minor heap,
           and then whether it is in the heap, which calls the table of pages.
   Here    the table answers both, so the first question always says yes, which the compiler sees, and the second one is
           a load from the table.

   Stock   empties a mark stack that is full at a 64th of the heap or more, and then reads parts of the heap again.
   Here    at an eighth, as with OCaml 5.
   Also    it is said how long slices take.

   Whether a pointer leads to the heap is hard to predict where static data and the heap are mixed. So the answer is
   always yes, but a pointer to anything else is replaced by one to a black block, by a conditional move. The loop
   queues it and then finds nothing to do, as for any block that is marked already, and without a cache miss. The other
   places that ask pass over black blocks too, and do not use the pointer afterwards. */
#include "prelude.h"
#include "hooks.h"
#include "mark_counters.h"

static struct {
  header_t header;
  value fields[7];
} const black_block __attribute__((aligned(64))) = { Make_header(7, 0, Caml_black), { 0 } };

Caml_inline bool heap_or_black(value *v)
{
  uintptr_t address = (uintptr_t)*v, i = address >> OH_CHUNK_LOG;
  if (__builtin_expect(i >= OH_TABLE_ENTRIES, 0)) return oh_pointer_is_markable(address);
  int8_t kind = oh_load_relaxed(&oh_table[i]);
  if (OH_TAINT && __builtin_expect(kind <= OH_KIND_UNKNOWN, 0))
    return oh_pointer_is_markable_slow(address, OH_REGION_BY_BLOCK);
  *v = __builtin_expect_with_probability(kind == OH_KIND_MAJOR, 1, 0.5) ? (value)address : (value)black_block.fields;
  return true;
}

#undef Is_in_heap
#if OH_COUNT
static inline bool is_markable_counted(uintptr_t v)
{
  oh_mark_counters_count_word(v);
  if ((v & 1) != 0) return false;
  if (oh_pointer_is_markable(v)) return true;
  return oh_mark_counters_count_other(v), false;
}
#define Is_in_heap(a) is_markable_counted((uintptr_t)(a))
#elif defined(DEBUG) /* assertions ask, too */
#define Is_in_heap(a) (((a) & 1) == 0 && oh_pointer_is_markable((uintptr_t)(a)))
#else
#define Is_in_heap(a) (((a) & 1) == 0 && heap_or_black(&(a)))
#endif

#define mark_stack_bound(words) ((words) / 8)

#pragma GCC diagnostic ignored "-Wunused-variable" /* the start of the minor heap */
#pragma GCC diagnostic ignored "-Wunused-function" /* rotate1 */
#include <major_gc.c>
