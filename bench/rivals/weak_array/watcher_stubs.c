/* SPDX-License-Identifier: MIT */
/* Observers that are keys of one weak array, by the primitives of the module Weak. To be deleted, a key is emptied, for
   which the lock is needed. */
#include <boxroot.h>
#include <caml/memory.h>
#include <stdbool.h>

extern value caml_weak_create(value length);
extern value caml_ephe_set_key(value array, value index, value v);
extern value caml_ephe_unset_key(value array, value index);
extern value caml_ephe_get_key(value array, value index);

typedef long observer;
enum { NO_OBSERVER = -1 };
static value array = Val_unit;
static void prepare(long count)
{
  array = caml_weak_create(Val_long(count));
  caml_register_generational_global_root(&array);
}
static observer observe(long place, value v)
{
  caml_ephe_set_key(array, Val_long(place), v);
  return place;
}
static bool look(observer o, value *v)
{
  value found = caml_ephe_get_key(array, Val_long(o));
  if (!Is_block(found)) return false;
  *v = Field(found, 0);
  return true;
}
static void drop(observer o) { caml_ephe_unset_key(array, Val_long(o)); }
#include "watcher.h"
