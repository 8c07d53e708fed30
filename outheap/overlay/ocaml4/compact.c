/* SPDX-License-Identifier: MIT */
/* Compaction. It turns round only pointers to the heap: static data it would know by their colour, but declared values may have any. Afterwards
   memory goes back to the system. */
#include "prelude.h"
#include <caml/compact.h>

#undef Is_in_value_area
#define Is_in_value_area(a) Is_in_heap(a)

#define caml_compact_heap oh_stock_compact_heap
#define caml_compact_heap_maybe oh_stock_compact_heap_maybe
void oh_stock_compact_heap(intnat policy);
void oh_stock_compact_heap_maybe(double overhead);
#include <compact.c>
#undef caml_compact_heap
#undef caml_compact_heap_maybe

void caml_compact_heap(intnat policy)
{
  oh_stock_compact_heap(policy);
  oh_heap_trim();
}

void caml_compact_heap_maybe(double overhead)
{
  intnat before = Caml_state->stat_compactions;
  oh_stock_compact_heap_maybe(overhead);
  if (Caml_state->stat_compactions != before) oh_heap_trim();
}
