/* SPDX-License-Identifier: MIT */
/* The stub keep(n), for each number of values that is measured: KEEP at the end of a file that has defined DEFINE(n),
   which makes a function keep_n. */
#include <caml/mlvalues.h>

#define USE(v) __asm__ volatile("" : : "r"(v) : "memory") /* what a value is for */
#define EACH(X) X(1) X(2) X(5) X(10) X(100) X(1000)
#define CASE(k) case k: keep_##k(); break;
#define KEEP                         \
  EACH(DEFINE)                       \
  value keep(value n)                \
  {                                  \
    switch (Long_val(n)) {           \
      EACH(CASE)                     \
    }                                \
    return Val_unit;                 \
  }
