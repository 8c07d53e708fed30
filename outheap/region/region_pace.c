/* SPDX-License-Identifier: MIT */
#include "region_pace.h"
#include <caml/memory.h>
#if OCAML_VERSION >= 50500
#include <caml/major_gc.h>
#include <caml/minor_gc.h>

/* From OCaml 5.5 on a cycle first sweeps, and then waits until the program has allocated some hundred thousand words in
   its heap; marking begins in a minor collection after that. What caml_adjust_gc_speed declares counts in proportion to
   the heap, so that a small one would wait for long, and a program that allocates nothing there for ever. So when half
   of what a cycle is run for was made since marking ran, it is asked to begin. */
#define WHOLE ((uint64_t)1 << 20)
static void begin_to_mark(size_t made, size_t most)
{
  static uint64_t since;
  if (caml_marking_started()) {
    __atomic_store_n(&since, 0, __ATOMIC_RELAXED);
    return;
  }
  uint64_t part = made >= most ? WHOLE : (uint64_t)((double)made / (double)most * (double)WHOLE) + 1;
  if (__atomic_add_fetch(&since, part, __ATOMIC_RELAXED) < WHOLE / 2) return;
  __atomic_store_n(&since, 0, __ATOMIC_RELAXED);
  atomic_store_release(&caml_gc_mark_phase_requested, 1);
  caml_request_minor_gc();
}
#endif

void outheap_region_pace(size_t made, size_t most)
{
  caml_adjust_gc_speed(made, most);
#if OCAML_VERSION >= 50500
  begin_to_mark(made, most);
#endif
}
