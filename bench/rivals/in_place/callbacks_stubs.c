/* SPDX-License-Identifier: MIT */
/* The field of the entry is the root, as OCaml's manual has it. */
#include "registered.h"

typedef value element;

static inline void element_begin(element *e, value v)
{
  *e = v;
  word_register(e);
}

static inline void element_set(element *e, value v) { word_modify(e, v); }
static inline value element_get(element const *e) { return *e; }
static inline void element_end(element *e) { word_remove(e); }

#include "foreign_callbacks.h"
