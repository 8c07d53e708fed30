/* SPDX-License-Identifier: MIT */
#include <caml/alloc.h>
#include <caml/custom.h>
#include <caml/fail.h>
#include <caml/mlvalues.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

value variant_malloc(value bytes) { return (value)malloc(Long_val(bytes)); }
value variant_word(value pattern) { return (value)(*(uint64_t *)Data_custom_val(pattern) & ~(uint64_t)1); }
value variant_code(value unit)
{
  (void)unit;
  return (value)((uintptr_t)&variant_code & ~(uintptr_t)1);
}

/* So much more address space than is in use now; negative: no limit. */
value variant_limit(value bytes)
{
  struct rlimit l;
  size_t pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (f == NULL || fscanf(f, "%zu", &pages) != 1 || getrlimit(RLIMIT_AS, &l) != 0) caml_failwith("limit");
  fclose(f);
  l.rlim_cur = Long_val(bytes) < 0 ? l.rlim_max : pages * (size_t)sysconf(_SC_PAGESIZE) + (size_t)Long_val(bytes);
  if (setrlimit(RLIMIT_AS, &l) != 0) caml_failwith("limit");
  return Val_unit;
}

/* Blocks whose finaliser counts: how many, and how many of them in another thread than the first one that made one. */
static intnat finalised, elsewhere;
static pthread_t maker;
static void count_one(value block)
{
  (void)block;
  finalised++;
  elsewhere += !pthread_equal(maker, pthread_self());
}
static struct custom_operations counting = { "variant_counting", count_one, custom_compare_default,
  custom_hash_default, custom_serialize_default, custom_deserialize_default, custom_compare_ext_default,
  custom_fixed_length_default };
value variant_counted(value words)
{
  maker = pthread_self();
  return caml_alloc_custom(&counting, Long_val(words) * sizeof(value), 0, 1);
}
value variant_finalised(value unit) { return (void)unit, Val_long(finalised); }
value variant_elsewhere(value unit) { return (void)unit, Val_long(elsewhere); }
