/* SPDX-License-Identifier: MIT */
#include <boxroot.h>
#include <caml/alloc.h>
#include <caml/fail.h>

#define SLOTS 1024
static boxroot results[SLOTS]; /* direct-mapped, by argument */
static intnat arguments[SLOTS];

value memo_store(value argument, value result)
{
  uintnat i = (uintnat)Long_val(argument) % SLOTS;
  if (results[i] == NULL ? (results[i] = boxroot_create(result)) == NULL : !boxroot_modify(&results[i], result))
    caml_failwith(boxroot_error_string());
  arguments[i] = Long_val(argument);
  return Val_unit;
}

value memo_find(value argument)
{
  uintnat i = (uintnat)Long_val(argument) % SLOTS;
  if (results[i] == NULL || arguments[i] != Long_val(argument)) return Val_int(0); /* None */
  value some = caml_alloc_small(1, 0);
  Field(some, 0) = boxroot_get(results[i]);
  return some;
}
