/* SPDX-License-Identifier: MIT */
/* The same lists as blocks of the OCaml heap: field 0 is the element, field 1 the next node or 0. */
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <stdbool.h>

#define NONE Val_long(0)

static bool persistent;

value gc_lists_style(value is_persistent)
{
  persistent = Bool_val(is_persistent);
  return Val_unit;
}

static value node(value held, value next)
{
  CAMLparam2(held, next);
  value n = caml_alloc_small(2, 0);
  Field(n, 0) = held;
  Field(n, 1) = next;
  CAMLreturn(n);
}

value gc_lists_return(value v) { return node(v, NONE); }

value gc_lists_plus(value list, value tail)
{
  if (!persistent) {
    while (list != NONE) {
      value rest = Field(list, 1);
      caml_modify(&Field(list, 1), tail);
      tail = list;
      list = rest;
    }
    return tail;
  }
  CAMLparam2(list, tail);
  for (; list != NONE; list = Field(list, 1)) tail = node(Field(list, 0), tail);
  CAMLreturn(tail);
}

value gc_lists_bind(value list, value f)
{
  CAMLparam2(list, f);
  CAMLlocal1(all);
  for (all = NONE; list != NONE; list = Field(list, 1)) {
    value some = caml_callback(f, Field(list, 0));
    all = gc_lists_plus(some, all);
  }
  CAMLreturn(all);
}

value gc_lists_fold(value f, value so_far, value list)
{
  CAMLparam3(f, so_far, list);
  for (; list != NONE; list = Field(list, 1)) so_far = caml_callback2(f, so_far, Field(list, 0));
  CAMLreturn(so_far);
}
