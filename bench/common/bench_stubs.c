/* SPDX-License-Identifier: MIT */
#define CAML_INTERNALS
#include <caml/alloc.h>
#include <caml/mlvalues.h>
#include <caml/version.h>
#if OCAML_VERSION >= 50500
#include <caml/major_gc.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double seconds(clockid_t clock)
{
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

double bench_wall(value unit) { (void)unit; return seconds(CLOCK_MONOTONIC); }
double bench_cpu(value unit) { (void)unit; return seconds(CLOCK_PROCESS_CPUTIME_ID); }
double bench_thread_cpu(value unit) { (void)unit; return seconds(CLOCK_THREAD_CPUTIME_ID); }
double bench_user(value unit)
{
  (void)unit;
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_utime.tv_usec * 1e-6;
}
value bench_wall_byte(value unit) { return caml_copy_double(bench_wall(unit)); }
value bench_cpu_byte(value unit) { return caml_copy_double(bench_cpu(unit)); }

value bench_thread_cpu_byte(value unit) { return caml_copy_double(bench_thread_cpu(unit)); }
value bench_user_byte(value unit) { return caml_copy_double(bench_user(unit)); }

/* Resident memory of this process, 0 where the system does not tell. */
value bench_resident_bytes(value unit)
{
  (void)unit;
  long total = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file) return Val_long(0);
  if (fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
  fclose(file);
  return Val_long(resident * sysconf(_SC_PAGESIZE));
}

/* Mappings of this process, 0 where the system does not tell. */
value bench_mappings(value unit)
{
  (void)unit;
  long lines = 0;
  FILE *file = fopen("/proc/self/maps", "r");
  if (!file) return Val_long(0);
  for (int c; (c = getc(file)) != EOF;) lines += c == '\n';
  fclose(file);
  return Val_long(lines);
}

/* The runner tells callgrind to cut what it counts at each call of this. */
__attribute__((noinline)) value bench_mark(value unit)
{
  __asm__ volatile("" ::: "memory");
  return unit;
}

/* Whether the collector marks, in a cycle that has begun: since OCaml 5.5 it sweeps first. */
value bench_marks(value unit)
{
  (void)unit;
#if OCAML_VERSION >= 50500
  return Val_bool(caml_marking_started());
#else
  return Val_true;
#endif
}

/* Has malloc give back what it keeps for later, where it can be asked to. */
value bench_trim(value unit)
{
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  return unit;
}
