/* SPDX-License-Identifier: MIT */
/* A frame with room for the N values, or for CAPACITY. */
#include "checked_local.h"

#define USE(v) __asm__ volatile("" : : "r"(v) : "memory") /* what the value is for */

#ifdef CAPACITY
#define ROOM(n) CAPACITY
#else
#define ROOM(n) n
#endif

#define DEFINE(n)                                                \
  static __attribute__((noinline)) void keep_##n(void)           \
  {                                                              \
    BOXROOT_FRAME(f, ROOM(n));                                   \
    for (long i = 0; i < n; i++) {                               \
      boxroot_local l = checked_local(&f, Val_long(i));          \
      USE(boxroot_local_get(l));                                 \
    }                                                            \
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
