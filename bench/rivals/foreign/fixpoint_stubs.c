/* SPDX-License-Identifier: MIT */
/* Caller-roots: a function receives roots, borrowed (value const *) or owned (boxroot), and roots only what it
   creates. */
#include "checked_root.h"
#include <caml/callback.h>

static __attribute__((noinline)) int same(value const *x, value const *y) { return Double_val(*x) == Double_val(*y); }

static boxroot fixpoint_rooted(value const *f, boxroot x)
{
  boxroot y = checked_create(caml_callback(*f, boxroot_get(x)));
  int done = same(boxroot_get_ref(x), boxroot_get_ref(y));
  boxroot_delete(x);
  return done ? y : fixpoint_rooted(f, y);
}

value fixpoint(value f, value x)
{
  boxroot f_root = checked_create(f);
  boxroot y = fixpoint_rooted(boxroot_get_ref(f_root), checked_create(x));
  value result = boxroot_get(y);
  boxroot_delete(y);
  boxroot_delete(f_root);
  return result;
}
