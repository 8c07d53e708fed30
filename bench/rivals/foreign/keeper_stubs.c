/* SPDX-License-Identifier: MIT */
/* A root for each of the N values. */
#include "checked_root.h"
#include "keeper.h"

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

KEEP
