/* SPDX-License-Identifier: MIT */
/* A field of the node is the root, so that a value which moves to another node is registered again. */
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

static inline value element_end(element *e)
{
#ifdef GENERATIONAL
  caml_remove_generational_global_root(e);
#else
  caml_remove_global_root(e);
#endif
  return *e;
}

static inline void element_move(element *to, element *from) { element_begin(to, element_end(from)); }

#include "foreign_lists.h"
