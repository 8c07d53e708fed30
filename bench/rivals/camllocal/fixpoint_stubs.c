/* SPDX-License-Identifier: MIT */
/* Callee-roots with the runtime's local roots. */
#include <caml/callback.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>

static __attribute__((noinline)) int same(value x, value y)
{
  CAMLparam2(x, y);
  CAMLreturnT(int, Double_val(x) == Double_val(y));
}

value fixpoint(value f, value x)
{
  CAMLparam2(f, x);
  CAMLlocal1(y);
  y = caml_callback(f, x);
  if (!same(x, y)) y = fixpoint(f, y);
  CAMLreturn(y);
}
