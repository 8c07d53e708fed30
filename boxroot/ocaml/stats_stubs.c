/* SPDX-License-Identifier: MIT */
/* What boxroot.ml binds. */
#define CAML_NAME_SPACE
#include <boxroot.h>

#include <boxroot/report.h>
#include <caml/alloc.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

value boxroot_ml_status(value unit)
{
  (void)unit;
  return Val_int(boxroot_status());
}

value boxroot_ml_setup(value unit)
{
  (void)unit;
  return Val_bool(boxroot_setup());
}

value boxroot_ml_error_string(value unit)
{
  (void)unit;
  return caml_copy_string(boxroot_error_string());
}

/* The record `stats`: the fields of boxroot_statistics, in the same order (tools/statistics), all of them uint64_t. */
value boxroot_ml_stats(value unit)
{
  enum { FIELDS = sizeof(boxroot_statistics) / sizeof(uint64_t) };
  union {
    boxroot_statistics named;
    uint64_t all[FIELDS];
  } s;
  (void)unit;
  boxroot_get_stats(&s.named);
  _Static_assert(FIELDS <= Max_young_wosize, "a small block");
  value result = caml_alloc_tuple(FIELDS);
  for (int i = 0; i < FIELDS; i++) Field(result, i) = Val_long(s.all[i]); /* a fresh young block, and immediates */
  return result;
}

value boxroot_ml_print_stats(value unit)
{
  boxroot_print_stats();
  fflush(stdout);
  return unit;
}

/* Why a call failed, or an empty string. */
static value answer(bool done) { return caml_copy_string(done ? "" : strerror(errno)); }

/* The empty name stands for the standard error output. */
value boxroot_ml_report(value file)
{
  (void)boxroot_setup();
  return answer(boxroot_report(caml_string_length(file) == 0 ? NULL : String_val(file)));
}

value boxroot_ml_sample(value n)
{
  bool possible = Long_val(n) >= 0 && Long_val(n) <= UINT32_MAX;
  if (!possible) errno = EINVAL;
  return answer(possible && boxroot_sample((uint32_t)Long_val(n)));
}
