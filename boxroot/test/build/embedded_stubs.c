/* SPDX-License-Identifier: MIT */
/* A shared object with OCaml in it: embedded_work() starts OCaml at its first call, lets it work with roots, and says
   how much went wrong. Compiles as C++ as well. START_ONLY and WITHOUT_START choose a half. */
#define CAML_NAME_SPACE
#ifndef START_ONLY
#include "boxroot.h"
#endif
#include <caml/callback.h>
#include <caml/mlvalues.h>
#include <caml/signals.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef START_ONLY
static value val_of_root(boxroot r) { return (value)((uintptr_t)r | 1); }
static boxroot root_of_val(value v) { return (boxroot)((uintptr_t)v & ~(uintptr_t)1); }

value e_create(value v) { return val_of_root(boxroot_create(v)); }
value e_get(value r) { return boxroot_get(root_of_val(r)); }
value e_modify(value r, value v)
{
  boxroot b = root_of_val(r);
  return boxroot_modify(&b, v) ? val_of_root(b) : Val_int(0);
}
value e_delete(value r) { boxroot_delete(root_of_val(r)); return Val_unit; }
value e_delete_nolock(value r)
{
  caml_enter_blocking_section();
  boxroot_delete(root_of_val(r));
  caml_leave_blocking_section();
  return Val_unit;
}
#endif

#ifndef WITHOUT_START
int embedded_work(void)
{
  static bool started;
  static char name[] = "embedded";
  static char *argv[] = {name, NULL};
  value const *work;
  if (!started) caml_startup(argv);
  started = true;
  work = caml_named_value("work");
  return work == NULL ? -1 : Int_val(caml_callback(*work, Val_unit));
}
#endif

#ifdef __cplusplus
}
#endif
