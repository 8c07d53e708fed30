/* SPDX-License-Identifier: MIT */
/* Read before each redirected unit of the runtime (OCaml 4.14): the questions the runtime asks about an address, answered by the table.

   How a unit is redirected. A file here has the name of a unit of the runtime. It redefines a few macros, includes the unit from the compiler's own
   sources, and may add functions that see the unit's static ones; `units` names those that need nothing but this file. Nothing of the runtime
   is repeated here; where a macro relies on names at its place of use, it says so, and the tool knows by their digests the sources for which that was
   checked.

   OCaml 4.14 guards already wherever it looks behind a pointer, over a hash table of pages. Units that are not redirected, and the stubs of others, still call
   caml_page_table_lookup, which is ours as well (hooks.c); what follows is the same without a call. */
#ifndef OH_PRELUDE_H
#define OH_PRELUDE_H

#ifndef CAML_INTERNALS
#define CAML_INTERNALS
#endif
#include <caml/address_class.h>
#include <caml/gc.h>
#include <caml/major_gc.h>
#include <caml/memory.h>
#include <caml/minor_gc.h>
#include "table.h"

_Static_assert(sizeof(value) == 8, "Outheap needs 64 bits");
#ifdef NO_NAKED_POINTERS
#error "this runtime has no page table to replace"
#endif

/* As Is_in_value_area, for any pattern with a clear low bit. Of the minor heaps' chunks only the present minor heap holds values. */
Caml_inline int oh_in_value_area(uintptr_t v)
{
  enum oh_kind k = oh_entry(v);
  if (k == OH_MAJOR) return 1;
  return k == OH_YOUNG ? Is_young((value)v) : oh_is_value(v);
}

#undef Is_in_heap
#undef Is_in_heap_or_young
#undef Is_in_value_area
#define Is_in_heap(a) oh_marks((uintptr_t)(a))
#define Is_in_heap_or_young(a) (Is_young((value)(a)) || oh_marks((uintptr_t)(a)))
#define Is_in_value_area(a) oh_in_value_area((uintptr_t)(a))

/* Cleaning an ephemeron looks at the colour of all keys, for static data are black. Declared values may have any colour. */
#pragma push_macro("Is_white_val")
Caml_inline int oh_is_white(value v) { return oh_marks((uintptr_t)v) && Is_white_val(v); }
#undef Is_white_val
#define Is_white_val(v) oh_is_white(v)
#include <caml/weak.h>
#pragma pop_macro("Is_white_val")

/* hooks.c */
void *oh_minor_heap_take(uintptr_t bytes);
void oh_minor_heap_give(void *start, uintptr_t bytes);
void oh_heap_trim(void);

#endif
