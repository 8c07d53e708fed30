/* SPDX-License-Identifier: MIT */
/* Observers that are weak roots. */
#include <boxroot/weak.h>

typedef boxroot_weak observer;
#define NO_OBSERVER NULL
static void prepare(long count) { (void)count; }
static observer observe(long place, value v)
{
  (void)place;
  return boxroot_weak_create(v);
}
static bool look(observer o, value *v) { return boxroot_weak_get(o, v); }
static void drop(observer o) { boxroot_weak_delete(o); }
#include "watcher.h"
