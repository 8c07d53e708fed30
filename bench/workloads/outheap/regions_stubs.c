/* SPDX-License-Identifier: MIT */
/* What the benchmark of regions asks of the system. */
#define _GNU_SOURCE
#include <caml/mlvalues.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* Something else at an address, of which half is given. */
value regions_occupy(value half)
{
  void *at = (void *)(half - 1);
  return Val_bool(mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at);
}

/* The pages of a mapped file in which a block lies leave this process. */
value regions_evict(value v)
{
  FILE *f = fopen("/proc/self/maps", "r");
  char line[512];
  unsigned long begin, end;
  while (f != NULL && fgets(line, sizeof line, f) != NULL)
    if (sscanf(line, "%lx-%lx", &begin, &end) == 2 && begin <= (uintptr_t)v && (uintptr_t)v < end)
      if (madvise((void *)begin, end - begin, MADV_PAGEOUT) != 0) perror("madvise");
  if (f != NULL) fclose(f);
  return Val_unit;
}

value regions_faults(value unit)
{
  struct rusage u;
  (void)unit;
  getrusage(RUSAGE_SELF, &u);
  return Val_long(u.ru_minflt + u.ru_majflt);
}

/* The sum of all words of so many bytes at an address, of which half is given. */
value regions_sum_words(value half, value bytes)
{
  const volatile uintptr_t *at = (const volatile uintptr_t *)(half - 1), *end = at + Long_val(bytes) / sizeof *at;
  uintptr_t sum = 0;
  for (; at < end; at++) sum += *at;
  return Val_long(sum >> 2);
}
