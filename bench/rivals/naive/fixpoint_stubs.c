/* SPDX-License-Identifier: MIT */
/* Callee-roots with boxroots: every function roots its own arguments and locals, as CAMLparam and CAMLlocal do. */
#include "checked_root.h"
#include <caml/callback.h>

static __attribute__((noinline)) int same(value x, value y)
{
  boxroot x_root = checked_create(x), y_root = checked_create(y);
  int result = Double_val(boxroot_get(x_root)) == Double_val(boxroot_get(y_root));
  boxroot_delete(x_root);
  boxroot_delete(y_root);
  return result;
}

value fixpoint(value f, value x)
{
  boxroot f_root = checked_create(f), x_root = checked_create(x);
  boxroot y_root = checked_create(caml_callback(f, x));
  if (!same(boxroot_get(x_root), boxroot_get(y_root)))
    checked_modify(&y_root, fixpoint(boxroot_get(f_root), boxroot_get(y_root)));
  value result = boxroot_get(y_root);
  boxroot_delete(y_root);
  boxroot_delete(x_root);
  boxroot_delete(f_root);
  return result;
}
