/* SPDX-License-Identifier: MIT */
/* CAMLlocalN for N values, which is known when it is compiled; or, with A_CALL_EACH, a function with a CAMLlocal for
   each value, as where their number is not known. */
#include "keeper.h"
#include <caml/memory.h>

#ifdef A_CALL_EACH
static __attribute__((noinline)) void keep_rest(long i, long n)
{
  CAMLparam0();
  CAMLlocal1(x);
  x = Val_long(i);
  USE(x);
  if (i + 1 < n) keep_rest(i + 1, n);
  USE(x);
  CAMLreturn0;
}

#define DEFINE(n) static void keep_##n(void) { keep_rest(0, n); }
#else
#define DEFINE(n)                                        \
  static __attribute__((noinline)) void keep_##n(void)   \
  {                                                      \
    CAMLparam0();                                        \
    CAMLlocalN(x, n);                                    \
    for (long i = 0; i < n; i++) {                       \
      x[i] = Val_long(i);                                \
      USE(x[i]);                                         \
    }                                                    \
    CAMLreturn0;                                         \
  }
#endif

KEEP
