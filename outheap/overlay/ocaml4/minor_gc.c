/* SPDX-License-Identifier: MIT */
/* Minor heaps.

   Stock   takes a minor heap from caml_stat_alloc_aligned_noexc, and frees it by caml_stat_free.
   Here    it is in chunks of its own. The only aligned memory that this unit takes is a minor heap; the other memory
           that it frees is remembered sets. When it frees a minor heap, the bounds of the domain's minor heap are still
           those of this one. */
#include "prelude.h"
#include "hooks.h"

static void *alloc_aligned(uintptr_t bytes, caml_stat_block *base)
{
  *base = oh_hooks_alloc_minor_heap(bytes);
  return *base;
}

static void free_memory(void *memory)
{
  if (memory != NULL && memory == Caml_state->young_base)
    oh_hooks_free_minor_heap(memory, (char *)Caml_state->young_end - (char *)Caml_state->young_start);
  else caml_stat_free(memory);
}

#define caml_stat_alloc_aligned_noexc(bytes, modulo, base) alloc_aligned(bytes, base)
#define caml_stat_free(memory) free_memory(memory)

#include <minor_gc.c>
