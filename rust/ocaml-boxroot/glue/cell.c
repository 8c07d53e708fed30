/* SPDX-License-Identifier: MIT */
/* Places that hold values: local roots, fields. */
#include "obx.h"
#include <caml/memory.h>
#include <stddef.h>

/* As in src/value/root.rs. */
_Static_assert(sizeof(struct caml__roots_block) == 8 * sizeof(value) &&
                 offsetof(struct caml__roots_block, ntables) == sizeof(value) &&
                 offsetof(struct caml__roots_block, nitems) == 2 * sizeof(value) &&
                 offsetof(struct caml__roots_block, tables) == 3 * sizeof(value),
               "the layout of local roots");

/* Where the list of local roots of the thread that runs is in its domain's state. */
size_t const obx_local_roots = offsetof(caml_domain_state, local_roots);

void obx_modify(value *field, value v) { caml_modify(field, v); }
void obx_initialize(value *field, value v) { caml_initialize(field, v); }

#if OCAML5
extern value caml_atomic_load(value), caml_atomic_exchange(value, value), caml_atomic_cas(value, value, value),
  caml_atomic_fetch_add(value, value);
value obx_atomic_get(value *field) { return caml_atomic_load((value)field); }
value obx_atomic_exchange(value *field, value v) { return caml_atomic_exchange((value)field, v); }
bool obx_atomic_cas(value *field, value old, value v) { return caml_atomic_cas((value)field, old, v) == Val_true; }
value obx_atomic_add(value *field, value n) { return caml_atomic_fetch_add((value)field, n); }
#else
/* OCaml 4's atomics are plain fields: nothing else runs as long as the lock is held. */
value obx_atomic_get(value *field) { return *field; }
value obx_atomic_exchange(value *field, value v)
{
  value old = *field;
  caml_modify(field, v);
  return old;
}
bool obx_atomic_cas(value *field, value old, value v)
{
  if (*field != old) return false;
  caml_modify(field, v);
  return true;
}
value obx_atomic_add(value *field, value n)
{
  value old = *field;
  *field = (value)((uintptr_t)old + (uintptr_t)n - 1);
  return old;
}
#endif
