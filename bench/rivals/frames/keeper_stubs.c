/* SPDX-License-Identifier: MIT */
/* A frame with room for the N values, or for CAPACITY. */
#include "checked_local.h"
#include "keeper.h"

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

KEEP
