/* SPDX-License-Identifier: MIT */
/* Callee-roots with the runtime's local roots. */
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>

enum { LEFT, KEY, RIGHT, FIELDS };

static __attribute__((noinline)) value node(value left, value key, value right)
{
  CAMLparam3(left, key, right);
  value result = caml_alloc_small(FIELDS, 0);
  Field(result, LEFT) = left;
  Field(result, KEY) = key;
  Field(result, RIGHT) = right;
  CAMLreturn(result);
}

static value build(long depth, double *next)
{
  if (depth == 0) return Val_long(0);
  CAMLparam0();
  CAMLlocal3(left, key, right);
  left = build(depth - 1, next);
  key = caml_copy_double((*next)++);
  right = build(depth - 1, next);
  CAMLreturn(node(left, key, right));
}

value tree_build(value depth)
{
  double next = 0;
  return build(Long_val(depth), &next);
}

value tree_iterate(value f, value tree)
{
  if (Is_long(tree)) return Val_unit;
  CAMLparam2(f, tree);
  tree_iterate(f, Field(tree, LEFT));
  caml_callback(f, Field(tree, KEY));
  tree_iterate(f, Field(tree, RIGHT));
  CAMLreturn(Val_unit);
}

value tree_map(value f, value tree)
{
  if (Is_long(tree)) return tree;
  CAMLparam2(f, tree);
  CAMLlocal3(left, key, right);
  left = tree_map(f, Field(tree, LEFT));
  key = caml_callback(f, Field(tree, KEY));
  right = tree_map(f, Field(tree, RIGHT));
  CAMLreturn(node(left, key, right));
}
