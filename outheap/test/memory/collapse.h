/* SPDX-License-Identifier: MIT */
/* What the kernel's khugepaged does, at once. */
#ifndef COLLAPSE_H
#define COLLAPSE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
#define HUGE_PAGE ((size_t)2 << 20)

/* Does a page that is used in part become a huge one? Memory of sanitizers is left alone. */
static bool can_collapse(void)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
  return false;
#endif
  char *p = mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return false;
  char *page = (char *)(((uintptr_t)p + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
  *page = 1;
  bool done = madvise(page, HUGE_PAGE, MADV_HUGEPAGE) == 0 && madvise(page, HUGE_PAGE, MADV_COLLAPSE) == 0;
  munmap(p, 2 * HUGE_PAGE);
  return done;
}

/* Makes huge pages of all that is used in part where huge pages are advised. Result: the number of such mappings; -1:
   this system does not do it. */
static long collapse_all(void)
{
  static struct { unsigned long from, to; } all[10000];
  char line[1000], *flags;
  long n = 0;
  unsigned long from = 0, to = 0, a, b;
  FILE *maps = can_collapse() ? fopen("/proc/self/smaps", "r") : NULL;
  if (maps == NULL) return -1;
  while (fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%lx-%lx ", &a, &b) == 2) from = a, to = b;
    flags = strncmp(line, "VmFlags:", 8) == 0 ? strstr(line, " hg") : NULL;
    if (flags != NULL && strstr(line, " wr") != NULL && n < 10000) all[n].from = from, all[n++].to = to;
  }
  fclose(maps);
  for (long i = 0; i < n; i++)
    for (uintptr_t p = (all[i].from + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1); p + HUGE_PAGE <= all[i].to; p += HUGE_PAGE) {
      unsigned char resident[HUGE_PAGE / 4096];
      if (mincore((void *)p, HUGE_PAGE, resident) != 0) continue;
      bool any = false;
      for (size_t k = 0; k < sizeof resident; k++) any |= resident[k] & 1;
      if (any) madvise((void *)p, HUGE_PAGE, MADV_COLLAPSE);
    }
  return n;
}

#endif
