/* SPDX-License-Identifier: MIT */
/* The marker. Its loop asks of each word first whether it is a block that is not young, by its rotated distance to the minor heap,
   and then whether it is in the heap. The table answers both, so the distance is made the greatest there is, which the compiler sees through.

   `rotate1` is a function with one use, whose argument starts with a cast: with a parenthesis, by which OH_USE tells it from the definition.

   Whether a pointer leads to the heap is hard to predict where static data and the heap are mixed. So the answer is yes, but a pointer to elsewhere is
   replaced by one to a black block, by a conditional move: the loop queues it and then finds nothing to do, as for any block that is marked
   already, and without a cache miss. The other places that ask leave black blocks alone just so, and use no pointer again after that. */
#include "prelude.h"
#include "count.h"

#define rotate1(x) OH_SECOND(OH_USE x, oh_stock_rotate1(x), )
#define OH_USE(type) , (uintnat)INTPTR_MAX,
#define OH_SECOND(...) OH_SECOND_(__VA_ARGS__)
#define OH_SECOND_(first, second, ...) second

static struct { header_t header; value fields[7]; } const oh_black __attribute__((aligned(64))) = {Make_header(7, 0, Caml_black), {0}};

Caml_inline bool oh_heap_or_black(value *v)
{
  uintptr_t address = (uintptr_t)*v, i = address >> OH_CHUNK_LOG;
  if (__builtin_expect(i >= OH_ENTRIES, 0)) return oh_marks(address);
  uint8_t kind = __atomic_load_n(&oh_table[i], __ATOMIC_RELAXED);
  if (OH_TAINT && __builtin_expect(kind <= OH_ASK, 0)) return oh_met(address);
  *v = __builtin_expect_with_probability(kind == OH_MAJOR, 1, 0.5) ? (value)address : (value)oh_black.fields;
  return true;
}

#undef Is_in_heap
#if OH_COUNT
#define Is_in_heap(a) oh_count_marks((uintptr_t)(a))
#elif defined(DEBUG) /* assertions ask, too */
#define Is_in_heap(a) (((a) & 1) == 0 && oh_marks((uintptr_t)(a)))
#else
#define Is_in_heap(a) (((a) & 1) == 0 && oh_heap_or_black(&(a)))
#endif

#pragma GCC diagnostic ignored "-Wunused-variable" /* the start of the minor heap */
#include <major_gc.c>
