/* SPDX-License-Identifier: MIT */
/* An event source in C that keeps closures of OCaml and calls them. From the top of the repository:
     ocamlopt -ccopt "-O2 -Iboxroot/include" boxroot/src/all.c examples/c/events_stubs.c examples/c/events.ml -o
     events */
#include <boxroot.h>
#include <caml/callback.h>
#include <caml/fail.h>

#define MOST 64
static boxroot handlers[MOST]; /* each holds a closure; NULL: free */

value events_subscribe(value f)
{
  int i = 0;
  while (i < MOST && handlers[i] != NULL) i++;
  if (i == MOST) caml_failwith("too many handlers");
  if ((handlers[i] = boxroot_create(f)) == NULL) caml_failwith(boxroot_error_string());
  return Val_int(i);
}

value events_unsubscribe(value i)
{
  boxroot gone = handlers[Int_val(i)];
  handlers[Int_val(i)] = NULL;
  if (gone != NULL) boxroot_delete(gone);
  return Val_unit;
}

/* Calls every handler. A handler may allocate, so `argument` may move: it is held by a root meanwhile. */
value events_fire(value argument)
{
  boxroot held = boxroot_create(argument);
  if (held == NULL) caml_failwith(boxroot_error_string());
  value result = Val_unit;
  for (int i = 0; i < MOST && !Is_exception_result(result); i++)
    if (handlers[i] != NULL) result = caml_callback_exn(boxroot_get(handlers[i]), boxroot_get(held));
  boxroot_delete(held);
  if (Is_exception_result(result)) caml_raise(Extract_exception(result));
  return Val_unit;
}
