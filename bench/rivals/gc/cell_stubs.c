/* SPDX-License-Identifier: MIT */
#include <caml/alloc.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>

value gc_cell_create(value v)
{
  CAMLparam1(v);
  value cell = caml_alloc_small(1, 0);
  Field(cell, 0) = v;
  CAMLreturn(cell);
}

value gc_cell_get(value cell) { return Field(cell, 0); }

value gc_cell_modify(value cell, value v)
{
  caml_modify(&Field(cell, 0), v);
  return cell;
}

value gc_cell_delete(value cell)
{
  caml_modify(&Field(cell, 0), Val_unit);
  return Val_unit;
}
