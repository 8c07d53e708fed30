/* SPDX-License-Identifier: MIT */
/* A small binding: a table of C that owns OCaml values by roots, a weak root, and a local frame. Its header is the one
   file that tools/amalgamate writes. */
#include "boxroot.h"
#include <caml/alloc.h>
#include <caml/fail.h>
#include <stdlib.h>

static boxroot *table;
static long length;
static boxroot_weak observed;

value binding_size(value n)
{
  table = calloc(Long_val(n), sizeof *table);
  if (table == NULL) caml_raise_out_of_memory();
  length = Long_val(n);
  return Val_unit;
}

value binding_keep(value i, value v)
{
  boxroot *place = &table[Long_val(i)];
  if (*place == NULL ? (*place = boxroot_create(v)) == NULL : !boxroot_modify(place, v))
    caml_failwith(boxroot_error_string());
  return Val_unit;
}

value binding_kept(value i) { return boxroot_get(table[Long_val(i)]); }

value binding_drop(value i)
{
  boxroot_delete(table[Long_val(i)]);
  table[Long_val(i)] = NULL;
  return Val_unit;
}

value binding_observe(value v)
{
  if (observed != NULL) boxroot_weak_delete(observed);
  if ((observed = boxroot_weak_create(v)) == NULL) caml_failwith(boxroot_error_string());
  return Val_unit;
}

value binding_is_alive(value unit)
{
  value v;
  (void)unit;
  return Val_bool(boxroot_weak_get(observed, &v));
}

/* A list of all that is kept: each cell is allocated while the frame keeps the rest. */
value binding_list(value unit)
{
  (void)unit;
  BOXROOT_FRAME(f, 1);
  boxroot_local list = boxroot_local_create(&f, Val_emptylist);
  for (long i = length; i > 0; i--) {
    if (table[i - 1] == NULL) continue;
    value cell = caml_alloc(2, 0);
    Store_field(cell, 0, boxroot_get(table[i - 1]));
    Store_field(cell, 1, boxroot_local_get(list));
    boxroot_local_set(list, cell);
  }
  return boxroot_local_get(list);
}

/* How many pools this copy of the library has. */
value binding_pools(value unit)
{
  boxroot_statistics s;
  (void)unit;
  boxroot_get_stats(&s);
  return Val_long(s.pools_in_use);
}
