/* SPDX-License-Identifier: MIT */
/* Random reads of a large piece of memory, in small pages or huge ones, without any runtime: what this machine can
   gain. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <caml/alloc.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { LINE = 64, HUGE_PAGE = 2 << 20, STEPS = 10000000, AHEAD = 16 };

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* All lines in random order, one cycle. */
static uint32_t *shuffled(uint32_t lines)
{
  uint32_t *order = malloc(lines * sizeof *order);
  uint64_t x = 88172645463325252u;
  if (order == NULL) caml_raise_out_of_memory();
  for (uint32_t i = 0; i < lines; i++) order[i] = i;
  for (uint32_t i = lines - 1; i > 0; i--) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    uint32_t j = (uint32_t)(x % i), t = order[i];
    order[i] = order[j], order[j] = t;
  }
  return order;
}

/* Nanoseconds for a read: each one depends on the one before; and in an order known ahead, prefetched. */
value access_times(value megabytes, value huge)
{
  CAMLparam0();
  CAMLlocal1(result);
  size_t bytes = (size_t)Long_val(megabytes) * 1000000 / HUGE_PAGE * HUGE_PAGE;
  uint32_t lines = (uint32_t)(bytes / LINE), at, sum = 0;
  uint32_t *order = shuffled(lines);
  char *map = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) caml_raise_out_of_memory();
  char *memory = (char *)(((uintptr_t)map + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
  madvise(memory, bytes, Bool_val(huge) ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  for (uint32_t i = 0; i < lines; i++)
    *(uint32_t *)(memory + (size_t)order[i] * LINE) = order[i + 1 < lines ? i + 1 : 0];
  double start = now();
  at = order[0];
  for (int i = 0; i < STEPS; i++) at = *(uint32_t *)(memory + (size_t)at * LINE);
  double middle = now();
  for (uint32_t i = 0; i + AHEAD < lines; i++) {
    __builtin_prefetch(memory + (size_t)order[i + AHEAD] * LINE);
    sum += *(uint32_t *)(memory + (size_t)order[i] * LINE);
  }
  double end = now();
  uint32_t volatile used = at + sum;
  (void)used;
  munmap(map, bytes + HUGE_PAGE);
  free(order);
  result = caml_alloc_tuple(2);
  Store_field(result, 0, caml_copy_double((middle - start) * 1e9 / STEPS));
  Store_field(result, 1, caml_copy_double((end - middle) * 1e9 / lines));
  CAMLreturn(result);
}
