/* SPDX-License-Identifier: MIT */
/* Roots, as a program in OCaml sees them: each is the address of a cell, as a nativeint. */
#include <boxroot.h>
#include <caml/alloc.h>
#include <caml/custom.h>
#include <caml/fail.h>

static boxroot root_of(value v) { return (boxroot)Nativeint_val(v); }

value roots_create(value v)
{
  boxroot r = boxroot_create(v);
  if (r == NULL) caml_failwith(boxroot_error_string());
  return caml_copy_nativeint((intnat)r);
}

value roots_get(value root) { return boxroot_get(root_of(root)); }

/* The cell may move: the result is the root from now on. */
value roots_modify(value root, value v)
{
  boxroot r = root_of(root);
  if (!boxroot_modify(&r, v)) caml_failwith(boxroot_error_string());
  return caml_copy_nativeint((intnat)r);
}

value roots_delete(value root)
{
  boxroot_delete(root_of(root));
  return Val_unit;
}
