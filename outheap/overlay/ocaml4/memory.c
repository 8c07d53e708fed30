/* SPDX-License-Identifier: MIT */
/* The heap's chunks and the table of pages: the definitions here give way to those of hooks.c, which every program contains since minor_gc.c refers to it.
   A weak definition is not inlined, so the calls in this unit arrive there, too. */
#include "prelude.h"
#include "block.h"
#include "space.h"

#pragma weak caml_page_table_lookup
#pragma weak caml_page_table_initialize
#pragma weak caml_page_table_add
#pragma weak caml_page_table_remove
#pragma weak caml_alloc_for_heap
#pragma weak caml_free_for_heap

#define caml_stat_destroy_pool oh_stock_destroy_pool
#include <memory.c>
#undef caml_stat_destroy_pool

/* The end of a runtime that was started with pooling: all of its memory is freed, and so is the heap. The address space stays ours. */
CAMLexport void caml_stat_destroy_pool(void)
{
  if (pool != NULL) {
    for (char *chunk = caml_heap_start, *next; chunk != NULL; chunk = next) {
      next = Chunk_next(chunk);
      caml_free_for_heap(chunk);
    }
    caml_heap_start = NULL;
    oh_minor_heap_give(Caml_state->young_start, (char *)Caml_state->young_end - (char *)Caml_state->young_start);
    oh_heap_trim();
    oh_pages_trim(OH_SPACE_YOUNG);
  }
  oh_stock_destroy_pool();
}
