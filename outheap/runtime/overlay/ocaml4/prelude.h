/* SPDX-License-Identifier: MIT */
/* Read before each redirected unit of the runtime (OCaml 4.14): the runtime's questions about an address, answered by
   the table.

   OCaml 4.14 asks its page table, a hash table, wherever it reads a header. Here the same questions are answered
   without a call. Units that are not redirected, and stubs, still call caml_page_table_lookup, which is defined in
   hooks.c.

   How a unit is redirected, and when that is right: overlay/ocaml5/prelude.h. The file `units` names the units that
   need nothing but this file. */
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
#include "header.h"
#include "pointer.h"

_Static_assert(sizeof(value) == 8, "Outheap needs 64 bits");
#ifdef NO_NAKED_POINTERS
#error "this runtime has no page table to replace"
#endif

/* As Is_in_value_area, for any word with a clear low bit. In the chunks of minor heaps only the current minor heap
   holds values. */
Caml_inline int oh_prelude_is_value(uintptr_t v)
{
  enum oh_kind k = oh_table_kind(v);
  if (k == OH_KIND_MAJOR) return 1;
  return k == OH_KIND_YOUNG ? Is_young((value)v) : oh_pointer_is_value(v);
}

#undef Is_in_heap
#undef Is_in_heap_or_young
#undef Is_in_value_area
#define Is_in_heap(a) oh_pointer_is_markable((uintptr_t)(a))
#define Is_in_heap_or_young(a) (Is_young((value)(a)) || oh_pointer_is_markable((uintptr_t)(a)))
#define Is_in_value_area(a) oh_prelude_is_value((uintptr_t)(a))

/* Cleaning an ephemeron reads the colour of all keys, since static data are black. Declared values may have any
   colour. */
#pragma push_macro("Is_white_val")
Caml_inline int oh_prelude_is_white(value v) { return oh_pointer_is_markable((uintptr_t)v) && Is_white_val(v); }
#undef Is_white_val
#define Is_white_val(v) oh_prelude_is_white(v)
#include <caml/weak.h>
#pragma pop_macro("Is_white_val")

/* Units that do not ask the page table: a block whose header may be read (header.h); the header and the tag of a word
   with a clear low bit: of what is opaque, those of an abstract block. */
Caml_inline int oh_prelude_is_block(value v)
{
  return (v & 1) == 0 && (oh_table_kind((uintptr_t)v) == OH_KIND_YOUNG ? Is_young(v) : oh_header_exists((uintptr_t)v));
}
Caml_inline header_t oh_prelude_header(value v)
{
  return oh_prelude_is_block(v) ? Hd_val(v) : Make_header(1, Abstract_tag, Caml_black);
}
Caml_inline tag_t oh_prelude_tag(value v) { return oh_prelude_is_block(v) ? Tag_val(v) : Abstract_tag; }

#endif
