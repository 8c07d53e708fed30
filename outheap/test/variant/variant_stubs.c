/* SPDX-License-Identifier: MIT */
#include <caml/alloc.h>
#include <caml/fail.h>
#include <caml/mlvalues.h>
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
