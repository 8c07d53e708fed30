/* SPDX-License-Identifier: MIT */
/* Caller-roots: the closure is rooted once; a function roots what it needs after a call, and nothing else. */
#include "checked_root.h"
#include <caml/alloc.h>
#include <caml/callback.h>

enum { LEFT, KEY, RIGHT, FIELDS };

/* Consumes both roots. */
static value node(boxroot left, boxroot key, value right)
{
  boxroot right_root = checked_create(right);
  value result = caml_alloc_small(FIELDS, 0);
  Field(result, LEFT) = boxroot_get(left);
  Field(result, KEY) = boxroot_get(key);
  Field(result, RIGHT) = boxroot_get(right_root);
  boxroot_delete(right_root);
  boxroot_delete(key);
  boxroot_delete(left);
  return result;
}

static value build(long depth, double *next)
{
  if (depth == 0) return Val_long(0);
  boxroot left = checked_create(build(depth - 1, next));
  boxroot key = checked_create(caml_copy_double((*next)++));
  return node(left, key, build(depth - 1, next));
}

static void iterate(value const *f, value tree)
{
  if (Is_long(tree)) return;
  boxroot root = checked_create(tree);
  iterate(f, Field(tree, LEFT));
  caml_callback(*f, Field(boxroot_get(root), KEY));
  value right = Field(boxroot_get(root), RIGHT);
  boxroot_delete(root);
  iterate(f, right);
}

static value map(value const *f, value tree)
{
  if (Is_long(tree)) return tree;
  boxroot root = checked_create(tree);
  boxroot left = checked_create(map(f, Field(tree, LEFT)));
  boxroot key = checked_create(caml_callback(*f, Field(boxroot_get(root), KEY)));
  value right = Field(boxroot_get(root), RIGHT);
  boxroot_delete(root);
  return node(left, key, map(f, right));
}

value tree_build(value depth)
{
  double next = 0;
  return build(Long_val(depth), &next);
}

value tree_iterate(value f, value tree)
{
  boxroot root = checked_create(f);
  iterate(boxroot_get_ref(root), tree);
  boxroot_delete(root);
  return Val_unit;
}

value tree_map(value f, value tree)
{
  boxroot root = checked_create(f);
  value result = map(boxroot_get_ref(root), tree);
  boxroot_delete(root);
  return result;
}
