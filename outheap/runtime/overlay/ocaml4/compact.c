/* SPDX-License-Identifier: MIT */
/* Compaction.

   Stock   inverts pointers to the heap and to static data, which it then tells by their colour (Is_in_value_area).
   Here    only pointers to the heap, since declared values may have any colour.
   Stock   frees heap chunks.
   Here    free memory is purged afterwards as well. */
#include "prelude.h"
#include "hooks.h"
#include <caml/compact.h>

#undef Is_in_value_area
#define Is_in_value_area(a) Is_in_heap(a)

#define caml_compact_heap oh_compact_stock
#define caml_compact_heap_maybe oh_compact_stock_maybe
void oh_compact_stock(intnat policy);
void oh_compact_stock_maybe(double overhead);
#include <compact.c>
#undef caml_compact_heap
#undef caml_compact_heap_maybe

void caml_compact_heap(intnat policy)
{
  oh_compact_stock(policy);
  oh_hooks_trim();
}

void caml_compact_heap_maybe(double overhead)
{
  intnat before = Caml_state->stat_compactions;
  oh_compact_stock_maybe(overhead);
  if (Caml_state->stat_compactions != before) oh_hooks_trim();
}
