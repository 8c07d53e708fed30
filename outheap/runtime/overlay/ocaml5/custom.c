/* SPDX-License-Identifier: MIT */
/* Custom blocks, bigarrays among them.

   Stock   memory of C that comes with one is declared when it is there.
   Here    there is room for it, if memory is limited (cycle.h), before the program writes to it: what malloc has
           just mapped is in memory from then on. */
#include "prelude.h"
#include <caml/custom.h>
#include "cycle.h"

#define caml_alloc_custom_mem oh_custom_stock_alloc_mem
#include <custom.c>
#undef caml_alloc_custom_mem

CAMLexport value caml_alloc_custom_mem(const struct custom_operations *ops, uintnat bsz, mlsize_t mem)
{
  oh_cycle_make_room(mem);
  return oh_custom_stock_alloc_mem(ops, bsz, mem);
}
