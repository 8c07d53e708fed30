/* SPDX-License-Identifier: MIT */
/* The field of the entry is the root, as OCaml's manual has it. */
#include <caml/memory.h>
#include <caml/mlvalues.h>

typedef value element;

static inline void element_begin(element *e, value v)
{
  *e = v;
#ifdef GENERATIONAL
  caml_register_generational_global_root(e);
#else
  caml_register_global_root(e);
#endif
}

static inline void element_set(element *e, value v)
{
#ifdef GENERATIONAL
  caml_modify_generational_global_root(e, v);
#else
  *e = v;
#endif
}

static inline value element_get(element const *e) { return *e; }

static inline void element_end(element *e)
{
#ifdef GENERATIONAL
  caml_remove_generational_global_root(e);
#else
  caml_remove_global_root(e);
#endif
}

#include "foreign_callbacks.h"
