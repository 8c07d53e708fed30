/* SPDX-License-Identifier: MIT */
/* Minor heaps lie in chunks of their own. The only aligned memory that this unit takes is a minor heap; the other things it frees are remembered
   sets. When it frees a minor heap, its bounds are still those of the domain. */
#include "prelude.h"

static void *oh_aligned(uintptr_t bytes, caml_stat_block *base)
{
  *base = oh_minor_heap_take(bytes);
  return *base;
}

static void oh_free(void *memory)
{
  if (memory != NULL && memory == Caml_state->young_base)
    oh_minor_heap_give(memory, (char *)Caml_state->young_end - (char *)Caml_state->young_start);
  else caml_stat_free(memory);
}

#define caml_stat_alloc_aligned_noexc(bytes, modulo, base) oh_aligned(bytes, base)
#define caml_stat_free(memory) oh_free(memory)

#include <minor_gc.c>
