/* SPDX-License-Identifier: MIT */
/* Native plugins: their static data is declared when their roots are registered (locals `handle` and `symbols` of caml_natdynlink_register). */
#include "prelude.h"
#include <caml/globroots.h>
#include <caml/roots.h>
#include <caml/stack.h>

static void oh_declare_plugin(void *handle, value symbols);
#define caml_register_dyn_globals(table, count) (oh_declare_plugin(handle, symbols), (caml_register_dyn_globals)(table, count))

#include <dynlink_nat.c>

static void oh_declare_plugin(void *handle, value symbols)
{
  for (mlsize_t i = 0; i < Wosize_val(symbols); i++) {
    char const *unit = String_val(Field(symbols, i));
    char const *begin = getsym(handle, unit, "data_begin"), *end = getsym(handle, unit, "data_end");
    if (begin && end) oh_declare_static(begin, end);
  }
}
