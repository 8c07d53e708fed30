/* SPDX-License-Identifier: MIT */
#include "checked_root.h"
#include "timed_thread.h"
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <caml/signals.h>

static boxroot *roots;
static long count;
static value values = Val_unit;

value remote_setup(value number, value some_values)
{
  boxroot_setup();
  count = Long_val(number);
  roots = calloc(count, sizeof *roots);
  if (!roots) root_failure();
  values = some_values;
  caml_register_generational_global_root(&values);
  return Val_unit;
}

value remote_create_all(value unit)
{
  for (long i = 0; i < count; i++) roots[i] = checked_create(Field(values, i % 1024));
  return unit;
}

static void delete_stride(long first, long stride)
{
  for (long i = first; i < count; i += stride) boxroot_delete(roots[i]);
}

value remote_delete_stride(value first, value stride)
{
  delete_stride(Long_val(first), Long_val(stride));
  return Val_unit;
}

value remote_delete_in_blocking_section(value unit)
{
  caml_enter_blocking_section();
  delete_stride(0, 1);
  caml_leave_blocking_section();
  return unit;
}

static void delete_each(void) { delete_stride(0, 1); }

/* The thread is unknown to OCaml; this one holds the domain lock meanwhile. */
value remote_delete_by_thread(value unit)
{
  (void)unit;
  return seconds_of_thread(delete_each);
}
