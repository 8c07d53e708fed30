/* SPDX-License-Identifier: MIT */
/* The heap's chunks and the table of pages.

   Stock   takes chunks from malloc, and keeps a hash table of pages.
   Here    the functions of hooks.c replace these: the unit's own definitions are made weak. Every program contains
           hooks.c, since minor_gc.c refers to it, and a weak definition is not inlined, so that calls in this unit
           arrive there, too.
   Stock   at the end of a runtime that was started with pooling, frees all memory of its pool, and with it the heap
           (caml_stat_destroy_pool).
   Here    the heap is not in the pool, and is freed before. */
#include "prelude.h"
#include "hooks.h"
#include "space.h"

#pragma weak caml_page_table_lookup
#pragma weak caml_page_table_initialize
#pragma weak caml_page_table_add
#pragma weak caml_page_table_remove
#pragma weak caml_alloc_for_heap
#pragma weak caml_free_for_heap

#define caml_stat_destroy_pool oh_memory_stock_destroy_pool
#include <memory.c>
#undef caml_stat_destroy_pool

CAMLexport void caml_stat_destroy_pool(void)
{
  if (pool != NULL) {
    for (char *chunk = caml_heap_start, *next; chunk != NULL; chunk = next) {
      next = Chunk_next(chunk);
      caml_free_for_heap(chunk);
    }
    caml_heap_start = NULL;
    oh_hooks_free_minor_heap(Caml_state->young_start, (char *)Caml_state->young_end - (char *)Caml_state->young_start);
    oh_hooks_trim();
    oh_space_trim(OH_SPACE_YOUNG);
  }
  oh_memory_stock_destroy_pool();
}
