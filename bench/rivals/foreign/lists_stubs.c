/* SPDX-License-Identifier: MIT */
#include "checked_root.h"

typedef boxroot element;

static inline void element_begin(element *e, value v) { *e = checked_create(v); }
static inline void element_move(element *to, element *from) { *to = *from; }

static inline value element_end(element *e)
{
  value v = boxroot_get(*e);
  boxroot_delete(*e);
  return v;
}

#include "foreign_lists.h"

value lists_setup(value unit)
{
  if (!boxroot_setup()) root_failure();
  return unit;
}
