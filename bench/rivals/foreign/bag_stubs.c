/* SPDX-License-Identifier: MIT */
#include "checked_root.h"
#include <string.h>

static boxroot *roots;
static long count;

/* The array is touched here, so that later growth of the process is due to the roots alone. */
value bag_create(value capacity)
{
  if (!boxroot_setup()) root_failure();
  roots = malloc(Long_val(capacity) * sizeof *roots);
  if (!roots) root_failure();
  memset(roots, 1, Long_val(capacity) * sizeof *roots);
  return Val_unit;
}

value bag_add(value v)
{
  roots[count++] = checked_create(v);
  return Val_unit;
}
