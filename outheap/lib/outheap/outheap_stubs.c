/* SPDX-License-Identifier: MIT */
/* The module Outheap. All functions of the variant are weak here: the program may be linked with the stock runtime. */
#include <caml/alloc.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <errno.h>
#include <outheap.h>
#include <stdio.h>

#pragma weak outheap_classify
#pragma weak outheap_reserve
#pragma weak outheap_set_opaque
#pragma weak outheap_trim
#pragma weak outheap_statistics
#pragma weak outheap_memory
#pragma weak outheap_report
#pragma weak outheap_stop_helper
#pragma weak outheap_helper_spans
#pragma weak outheap_setting

value outheap_ml_available(value unit)
{
  (void)unit;
  return Val_bool(outheap_classify != NULL);
}

value outheap_ml_classify(value v)
{
  return Val_int(outheap_classify ? (int)outheap_classify((void *)v) : OUTHEAP_UNKNOWN);
}

value outheap_ml_reserve(value bytes)
{
  if (!outheap_reserve) return Val_int(3);
  if (Long_val(bytes) <= 0) return Val_int(2);
  int error = outheap_reserve((size_t)Long_val(bytes));
  return Val_int(error == 0 ? 0 : error == EINVAL ? 2 : 1);
}

value outheap_ml_set_opaque(value opaque)
{
  return Val_bool(outheap_set_opaque && outheap_set_opaque(Bool_val(opaque)));
}

value outheap_ml_trim(value unit)
{
  (void)unit;
  return Val_long(outheap_trim ? outheap_trim() : 0);
}

value outheap_ml_setting(value name)
{
  size_t length = 0;
  char const *found = outheap_setting ? outheap_setting(String_val(name), &length) : NULL;
  return found == NULL ? Val_none : caml_alloc_some(caml_alloc_initialized_string(length, found));
}

value outheap_ml_stop_helper(value unit)
{
  if (outheap_stop_helper) outheap_stop_helper();
  return unit;
}

value outheap_ml_helper_spans(value unit)
{
  CAMLparam1(unit);
  CAMLlocal2(result, tuple);
  enum { MOST = 1024 };
  struct outheap_helper_span *spans = outheap_helper_spans ? caml_stat_alloc(MOST * sizeof *spans) : NULL;
  size_t n = spans != NULL ? outheap_helper_spans(spans, MOST) : 0;
  result = caml_alloc(n, 0); /* n = 0: the empty array */
  for (size_t i = 0; i < n; i++) {
    struct outheap_helper_span const *s = &spans[i];
    tuple = caml_alloc_small(5, 0);
    Field(tuple, 0) = Val_long(s->number);
    Field(tuple, 1) = Val_long(s->began);
    Field(tuple, 2) = Val_long(s->ended);
    Field(tuple, 3) = Val_long(s->work);
    Field(tuple, 4) = Val_bool(s->marks);
    Store_field(result, i, tuple);
  }
  caml_stat_free(spans);
  CAMLreturn(result);
}

value outheap_ml_memory(value unit)
{
  (void)unit;
  struct outheap_memory m = {0};
  if (outheap_memory) outheap_memory(&m);
  size_t const words[] = { m.used, m.limit, m.live, m.free, m.pools, m.blocks, m.young };
  mlsize_t n = sizeof words / sizeof *words;
  value result = caml_alloc_tuple(n);
  for (mlsize_t i = 0; i < n; i++) Store_field(result, i, Val_long(words[i]));
  return result;
}

static void print_sample(void const *pointer, void const *data)
{
  (void)data;
  char line[64];
  int n = snprintf(line, sizeof line, "outheap: foreign pointer %p\n", pointer);
  if (n > 0) (void)fwrite(line, 1, (size_t)n, stderr);
}

value outheap_ml_report(value every)
{
  if (!outheap_report || Long_val(every) < 0) return Val_long(0);
  return Val_long(outheap_report((size_t)Long_val(every), print_sample, NULL));
}

value outheap_ml_statistics(value unit)
{
  (void)unit;
  struct outheap_statistics s = {0};
  if (outheap_statistics) outheap_statistics(&s);
  size_t const *words = (size_t const *)&s;
  mlsize_t n = sizeof s / sizeof *words;
  value result = caml_alloc_tuple(n);
  for (mlsize_t i = 0; i < n; i++) Store_field(result, i, Val_long(words[i]));
  return result;
}
