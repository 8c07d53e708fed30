/* SPDX-License-Identifier: MIT */
/* The marker. Its loop asks of each word first whether it is a block that is not young, by its rotated distance to the minor heap,
   and then whether it is in the heap. The table answers both, so the distance is made the greatest there is, which the compiler sees through.

   `rotate1` is a function with one use, whose argument starts with a cast: with a parenthesis, by which OH_USE tells it from the definition. */
#include "prelude.h"
#include "count.h"

#define rotate1(x) OH_SECOND(OH_USE x, oh_stock_rotate1(x), )
#define OH_USE(type) , (uintnat)INTPTR_MAX,
#define OH_SECOND(...) OH_SECOND_(__VA_ARGS__)
#define OH_SECOND_(first, second, ...) second

#undef Is_in_heap
#if OH_COUNT
#define Is_in_heap(a) oh_count_marks((uintptr_t)(a))
#else
#define Is_in_heap(a) (((a) & 1) == 0 && oh_marks((uintptr_t)(a)))
#endif

#include <major_gc.c>
