/* SPDX-License-Identifier: MIT */
/* Native plugins.

   Stock   registers the roots of a plugin (caml_natdynlink_register).
   Here    its static data is declared first. The macro uses two local variables of that function, `handle` and
           `symbols`. */
#include "prelude.h"
#include <caml/globroots.h>
#include <caml/roots.h>
#include <caml/stack.h>

static void declare_plugin(void *handle, value symbols);
#define caml_register_dyn_globals(table, count) \
  (declare_plugin(handle, symbols), (caml_register_dyn_globals)(table, count))

#include <dynlink_nat.c>

static void declare_plugin(void *handle, value symbols)
{
  for (mlsize_t i = 0; i < Wosize_val(symbols); i++) {
    char const *unit = String_val(Field(symbols, i));
    char const *begin = getsym(handle, unit, "data_begin"), *end = getsym(handle, unit, "data_end");
    if (begin && end) oh_prelude_declare_values(begin, end);
  }
}
