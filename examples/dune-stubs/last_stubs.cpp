// SPDX-License-Identifier: MIT
#include <boxroot/boxroot.hpp>

#include <caml/fail.h>

extern "C" value last_swap(value v)
{
  static boxroot_ptr::root last = boxroot_ptr::root::try_create(Val_unit);
  value before = last ? last.get() : Val_unit;
  if (!last.try_set(v)) caml_failwith(boxroot_error_string());
  return before;
}
