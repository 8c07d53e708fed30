/* SPDX-License-Identifier: MIT */
/* A root for each of the N values. */
#include "checked_root.h"

#define USE(v) __asm__ volatile("" : : "r"(v) : "memory") /* what the value is for */

#define DEFINE(n)                                        \
  static __attribute__((noinline)) void keep_##n(void)   \
  {                                                      \
    boxroot all[n];                                      \
    for (long i = 0; i < n; i++) {                       \
      all[i] = checked_create(Val_long(i));              \
      USE(boxroot_get(all[i]));                          \
    }                                                    \
    for (long i = n; i-- > 0;) boxroot_delete(all[i]);   \
  }

#define EACH(X) X(1) X(2) X(5) X(10) X(100) X(1000)
EACH(DEFINE)

value keep(value n)
{
  switch (Long_val(n)) {
#define CASE(k) case k: keep_##k(); break;
    EACH(CASE)
  }
  return Val_unit;
}
