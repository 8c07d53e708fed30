/* SPDX-License-Identifier: MIT */
#include "checked_root.h"

#define Root_val(cell) ((boxroot)((uintptr_t)(cell) - 1))
#define Val_root(root) ((value)((uintptr_t)(root) + 1))

value cell_create(value v) { return Val_root(checked_create(v)); }

value cell_get(value cell) { return boxroot_get(Root_val(cell)); }

value cell_modify(value cell, value v)
{
  boxroot root = Root_val(cell);
  checked_modify(&root, v);
  return Val_root(root);
}

value cell_delete(value cell)
{
  boxroot_delete(Root_val(cell));
  return Val_unit;
}

value cell_setup(value unit)
{
  if (!boxroot_setup()) root_failure();
  return unit;
}
