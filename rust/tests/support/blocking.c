/* SPDX-License-Identifier: MIT */
/* C code that OCaml calls, and that calls Rust in a blocking section of its own. */
#define CAML_NAME_SPACE
#include <caml/mlvalues.h>
#include <caml/signals.h>

intnat testing_unlocked(intnat n);

value testing_in_blocking_section(value n)
{
  intnat result;
  caml_enter_blocking_section();
  result = testing_unlocked(Long_val(n));
  caml_leave_blocking_section();
  return Val_long(result);
}
