/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#define CAML_INTERNALS
#include <caml/alloc.h>
#include <caml/custom.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <errno.h>
#include <outheap_region.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* A custom type with data of its own, and one that stays unknown. */
static int compare(value a, value b) { return (int)(*(intnat *)Data_custom_val(a) - *(intnat *)Data_custom_val(b)); }
static intnat hash(value v) { return *(intnat *)Data_custom_val(v); }
static struct custom_operations known = { "region_test.known", custom_finalize_default, compare, hash,
                                          custom_serialize_default, custom_deserialize_default,
                                          custom_compare_ext_default, custom_fixed_length_default };
static struct custom_operations unknown = { "region_test.unknown", custom_finalize_default, compare, hash,
                                            custom_serialize_default, custom_deserialize_default,
                                            custom_compare_ext_default, custom_fixed_length_default };

value region_test_register(value unit) { return (void)unit, Val_bool(outheap_region_register_custom(&known)); }

value region_test_custom(value is_known, value n)
{
  value v = caml_alloc_custom(Bool_val(is_known) ? &known : &unknown, 2 * sizeof(intnat), 0, 1);
  ((intnat *)Data_custom_val(v))[0] = Long_val(n);
  ((intnat *)Data_custom_val(v))[1] = ~Long_val(n);
  return v;
}

value region_test_custom_number(value v)
{
  intnat *n = Data_custom_val(v);
  return Val_long(n[1] == ~n[0] ? n[0] : -1);
}

value region_test_abstract(value unit)
{
  value v = caml_alloc(2, Abstract_tag);
  (void)unit;
  memset((void *)v, 0, 16);
  return v;
}

/* Something else at an address (half of it); it can be read. */
value region_test_occupy(value half, value bytes)
{
  void *at = (void *)(half - 1), *p = mmap(at, (size_t)Long_val(bytes), PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  return Val_bool(p == at);
}

value region_test_address(value v) { return v | 1; }

value region_test_color(value v) { return Val_int(Hd_val(v) >> 8 & 3); }

/* Failures: region_faults.h. */
static long fail_after; /* 0: none; 1: the next */
static int failed, lasting; /* was there one; do all fail after the first one */
int region_faults_now(int error)
{
  if (!(failed && lasting) && (fail_after == 0 || --fail_after != 0)) return 0;
  failed = 1;
  errno = error;
  return 1;
}
/* Calls of umask by the library. */
static long umasks;
mode_t region_faults_umask(mode_t mask)
{
  umasks++;
  return umask(mask);
}
value region_test_umasks(value unit) { return (void)unit, Val_long(umasks); }

/* The nth call from now on fails; -n: that one, and all that follow. Result: was there one since the last time? */
value region_test_fail(value n)
{
  int before = failed;
  failed = 0;
  lasting = Long_val(n) < 0;
  fail_after = labs(Long_val(n));
  return Val_bool(before);
}

/* A line of a file of /proc/self, in KB; -1: there is none. */
value region_test_proc(value file, value name)
{
  FILE *f = fopen(String_val(file), "r");
  char line[512];
  long n = -1;
  while (f != NULL && fgets(line, sizeof line, f) != NULL)
    if (strncmp(line, String_val(name), caml_string_length(name)) == 0)
      sscanf(line + caml_string_length(name), " %ld", &n);
  if (f != NULL) fclose(f);
  return Val_long(n);
}

value region_test_lines(value file)
{
  FILE *f = fopen(String_val(file), "r");
  long n = 0;
  for (int c; f != NULL && (c = getc(f)) != EOF;) n += c == '\n';
  if (f != NULL) fclose(f);
  return Val_long(n);
}
