/* SPDX-License-Identifier: MIT */
/* Callee-roots with local frames. */
#include "checked_local.h"
#include <caml/callback.h>

static __attribute__((noinline)) int same(value x_, value y_)
{
  BOXROOT_FRAME(f, 2);
  boxroot_local x = checked_local(&f, x_), y = checked_local(&f, y_);
  return Double_val(boxroot_local_get(x)) == Double_val(boxroot_local_get(y));
}

value fixpoint(value function, value x_)
{
  BOXROOT_FRAME(f, 3);
  boxroot_local step = checked_local(&f, function), x = checked_local(&f, x_);
  boxroot_local y = checked_local(&f, caml_callback(boxroot_local_get(step), boxroot_local_get(x)));
  if (!same(boxroot_local_get(x), boxroot_local_get(y)))
    boxroot_local_set(y, fixpoint(boxroot_local_get(step), boxroot_local_get(y)));
  return boxroot_local_get(y);
}
