/* SPDX-License-Identifier: MIT */
/* Callee-roots with boxroots: every function roots its own arguments and locals, as CAMLparam and CAMLlocal do. */
#include "checked_root.h"
#include <caml/alloc.h>
#include <caml/callback.h>

enum { LEFT, KEY, RIGHT, FIELDS };

static __attribute__((noinline)) value node(value left_, value key_, value right_)
{
  boxroot left = checked_create(left_), key = checked_create(key_), right = checked_create(right_);
  value result = caml_alloc_small(FIELDS, 0);
  Field(result, LEFT) = boxroot_get(left);
  Field(result, KEY) = boxroot_get(key);
  Field(result, RIGHT) = boxroot_get(right);
  boxroot_delete(right);
  boxroot_delete(key);
  boxroot_delete(left);
  return result;
}

static value build(long depth, double *next)
{
  if (depth == 0) return Val_long(0);
  boxroot left = checked_create(build(depth - 1, next));
  boxroot key = checked_create(caml_copy_double((*next)++));
  boxroot right = checked_create(build(depth - 1, next));
  value result = node(boxroot_get(left), boxroot_get(key), boxroot_get(right));
  boxroot_delete(right);
  boxroot_delete(key);
  boxroot_delete(left);
  return result;
}

value tree_build(value depth)
{
  double next = 0;
  return build(Long_val(depth), &next);
}

value tree_iterate(value f_, value tree_)
{
  if (Is_long(tree_)) return Val_unit;
  boxroot f = checked_create(f_), tree = checked_create(tree_);
  tree_iterate(boxroot_get(f), Field(boxroot_get(tree), LEFT));
  caml_callback(boxroot_get(f), Field(boxroot_get(tree), KEY));
  tree_iterate(boxroot_get(f), Field(boxroot_get(tree), RIGHT));
  boxroot_delete(tree);
  boxroot_delete(f);
  return Val_unit;
}

value tree_map(value f_, value tree_)
{
  if (Is_long(tree_)) return tree_;
  boxroot f = checked_create(f_), tree = checked_create(tree_);
  boxroot left = checked_create(tree_map(boxroot_get(f), Field(boxroot_get(tree), LEFT)));
  boxroot key = checked_create(caml_callback(boxroot_get(f), Field(boxroot_get(tree), KEY)));
  boxroot right = checked_create(tree_map(boxroot_get(f), Field(boxroot_get(tree), RIGHT)));
  value result = node(boxroot_get(left), boxroot_get(key), boxroot_get(right));
  boxroot_delete(right);
  boxroot_delete(key);
  boxroot_delete(left);
  boxroot_delete(tree);
  boxroot_delete(f);
  return result;
}
