/* SPDX-License-Identifier: MIT */
/* Visits of slots for the collector of OCaml 5. */
#include "runtime.h"
#if BXR_OCAML5
#include "atomic.h"
#include <caml/roots.h>

void bxr_runtime_visit(bxr_visitor const *visitor, value v, uintptr_t *slot)
{
  ((scanning_action)visitor->action)(visitor->data, v, (volatile value *)slot);
}

#if !BOXROOT_CONSERVATIVE
#if OCAML_VERSION < 50500
/* An infix pointer points into a closure, and the header before it is one of the words of the block. The collector
   gives the block its new place, and lets the slot point into it, before it copies these words: it does that when all
   roots have been visited, or, if another domain found the block first, whenever that domain gets to it. Until then the
   word is unspecified. But pending deletions, finalisers and the marker can darken the value earlier, and read that
   word. So it is stored there first; the collector copies the same word later. The old place keeps it: only the block's
   own header and its first field are overwritten. The slot gets the new address last, since the marker of a domain that
   ends may be reading the pool at this moment. (Since 5.5, with ocaml/ocaml#14495, it copies the word in time.) */
__attribute__((noinline, cold))
static void visit_young_infix(bxr_visitor const *visitor, value v, uintptr_t *slot, header_t header)
{
  volatile value moved = v;
  ((scanning_action)visitor->action)(visitor->data, v, &moved);
  value new_place = moved;
  bxr_store_relaxed(Hp_val(new_place), header);
  bxr_store_release(slot, (uintptr_t)new_place);
}

void bxr_runtime_visit_young(bxr_visitor const *visitor, value v, uintptr_t *slot)
{
  header_t header = bxr_load_relaxed(Hp_val(v));
  if (BXR_UNLIKELY(Tag_hd(header) == Infix_tag)) visit_young_infix(visitor, v, slot, header);
  else ((scanning_action)visitor->action)(visitor->data, v, (volatile value *)slot);
}
#else
void bxr_runtime_visit_young(bxr_visitor const *visitor, value v, uintptr_t *slot)
{
  bxr_runtime_visit(visitor, v, slot);
}
#endif
#endif
#endif
