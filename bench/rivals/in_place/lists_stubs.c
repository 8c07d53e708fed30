/* SPDX-License-Identifier: MIT */
/* A field of the node is the root, so that a value which moves to another node is registered again. */
#include "registered.h"

typedef value element;

static inline void element_begin(element *e, value v)
{
  *e = v;
  word_register(e);
}

static inline value element_end(element *e)
{
  word_remove(e);
  return *e;
}

static inline void element_move(element *to, element *from) { element_begin(to, element_end(from)); }

#include "foreign_lists.h"
