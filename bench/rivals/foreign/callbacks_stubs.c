/* SPDX-License-Identifier: MIT */
#include "checked_root.h"

typedef boxroot element;

static inline void element_begin(element *e, value v) { *e = checked_create(v); }
static inline void element_set(element *e, value v) { checked_modify(e, v); }
static inline value element_get(element const *e) { return boxroot_get(*e); }
static inline void element_end(element *e) { boxroot_delete(*e); }

#include "foreign_callbacks.h"

value callbacks_setup(value unit)
{
  if (!boxroot_setup()) root_failure();
  return unit;
}
