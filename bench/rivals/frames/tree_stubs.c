/* SPDX-License-Identifier: MIT */
/* Callee-roots with local frames. */
#include "checked_local.h"
#include <caml/alloc.h>
#include <caml/callback.h>

enum { LEFT, KEY, RIGHT, FIELDS };

static __attribute__((noinline)) value node(value left_, value key_, value right_)
{
  BOXROOT_FRAME(frame, FIELDS);
  boxroot_local left = checked_local(&frame, left_), key = checked_local(&frame, key_);
  boxroot_local right = checked_local(&frame, right_);
  value result = caml_alloc_small(FIELDS, 0);
  Field(result, LEFT) = boxroot_local_get(left);
  Field(result, KEY) = boxroot_local_get(key);
  Field(result, RIGHT) = boxroot_local_get(right);
  return result;
}

static value build(long depth, double *next)
{
  if (depth == 0) return Val_long(0);
  BOXROOT_FRAME(frame, 3);
  boxroot_local left = checked_local(&frame, build(depth - 1, next));
  boxroot_local key = checked_local(&frame, caml_copy_double((*next)++));
  boxroot_local right = checked_local(&frame, build(depth - 1, next));
  return node(boxroot_local_get(left), boxroot_local_get(key), boxroot_local_get(right));
}

value tree_build(value depth)
{
  double next = 0;
  return build(Long_val(depth), &next);
}

value tree_iterate(value f_, value tree_)
{
  if (Is_long(tree_)) return Val_unit;
  BOXROOT_FRAME(frame, 2);
  boxroot_local f = checked_local(&frame, f_), tree = checked_local(&frame, tree_);
  tree_iterate(boxroot_local_get(f), Field(boxroot_local_get(tree), LEFT));
  caml_callback(boxroot_local_get(f), Field(boxroot_local_get(tree), KEY));
  tree_iterate(boxroot_local_get(f), Field(boxroot_local_get(tree), RIGHT));
  return Val_unit;
}

value tree_map(value f_, value tree_)
{
  if (Is_long(tree_)) return tree_;
  BOXROOT_FRAME(frame, 5);
  boxroot_local f = checked_local(&frame, f_), tree = checked_local(&frame, tree_);
  boxroot_local left = checked_local(&frame, tree_map(f_, Field(tree_, LEFT)));
  boxroot_local key =
    checked_local(&frame, caml_callback(boxroot_local_get(f), Field(boxroot_local_get(tree), KEY)));
  boxroot_local right =
    checked_local(&frame, tree_map(boxroot_local_get(f), Field(boxroot_local_get(tree), RIGHT)));
  return node(boxroot_local_get(left), boxroot_local_get(key), boxroot_local_get(right));
}
