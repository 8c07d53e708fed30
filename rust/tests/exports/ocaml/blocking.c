/* SPDX-License-Identifier: MIT */
/* A stub of C that calls Rust in a blocking section. */
#define CAML_NAME_SPACE
#include <caml/mlvalues.h>
#include <caml/signals.h>

/* As OCaml calls it. */
value ocaml_export_exports__attached(value unit);

value test_blocking(value unit)
{
  value answer;
  (void)unit;
  caml_enter_blocking_section();
  answer = ocaml_export_exports__attached(Val_unit);
  caml_leave_blocking_section();
  return answer;
}
