/* SPDX-License-Identifier: MIT */
/* A thread that OCaml does not know, and that forks. The end of the keeper while it asks domains for slices. What
   khugepaged does, at once. */
#include <caml/mlvalues.h>
#include <caml/signals.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int left;

static void *fork_all(void *unused)
{
  for (; left > 0; left--) {
    int status = 1;
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) perror("a fork failed"), _exit(1);
    usleep(200);
  }
  return unused;
}

value follow_fork_beside(value times)
{
  pthread_t thread;
  left = (int)Long_val(times);
  if (pthread_create(&thread, NULL, fork_all, NULL) != 0) perror("no thread"), _exit(1);
  pthread_detach(thread);
  return Val_unit;
}

value follow_forks_left(value unit) { return (void)unit, Val_long(left); }

extern bool oh_following_asks; /* of the runtime */
void outheap_stop_helper(void);

static bool asks(void) { return __atomic_load_n(&oh_following_asks, __ATOMIC_RELAXED); }

/* All domains are in blocking sections. Result: does it still ask? */
value follow_stop_while_it_asks(value unit)
{
  (void)unit;
  caml_enter_blocking_section();
  for (int i = 0; !asks(); i++) {
    usleep(100);
    if (i > 300000) fputs("the keeper does not ask\n", stderr), _exit(76);
  }
  outheap_stop_helper();
  bool still = asks();
  caml_leave_blocking_section();
  return Val_bool(still);
}

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
#define HUGE ((size_t)2 << 20)

/* Does a page that is used in part become a huge one? */
static bool can_collapse(void)
{
  char *p = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return false;
  char *page = (char *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
  *page = 1;
  bool done = madvise(page, HUGE, MADV_HUGEPAGE) == 0 && madvise(page, HUGE, MADV_COLLAPSE) == 0;
  munmap(p, 2 * HUGE);
  return done;
}

/* Makes huge pages of all that is used in part where huge pages are advised. Result: the number of such mappings; -1:
   this system does not do it. */
value follow_collapse(value unit)
{
  (void)unit;
  static struct { unsigned long from, to; } all[10000];
  char line[1000], *flags;
  long n = 0;
  unsigned long from = 0, to = 0, a, b;
  FILE *maps = can_collapse() ? fopen("/proc/self/smaps", "r") : NULL;
  if (maps == NULL) return Val_long(-1);
  while (fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%lx-%lx ", &a, &b) == 2) from = a, to = b;
    flags = strncmp(line, "VmFlags:", 8) == 0 ? strstr(line, " hg") : NULL;
    if (flags != NULL && strstr(line, " wr") != NULL && n < 10000) all[n].from = from, all[n++].to = to;
  }
  fclose(maps);
  for (long i = 0; i < n; i++)
    for (unsigned long p = (all[i].from + HUGE - 1) & ~(HUGE - 1); p + HUGE <= all[i].to; p += HUGE) {
      unsigned char resident[HUGE / 4096];
      if (mincore((void *)p, HUGE, resident) != 0) continue;
      bool any = false;
      for (size_t k = 0; k < sizeof resident; k++) any |= resident[k] & 1;
      if (any) madvise((void *)p, HUGE, MADV_COLLAPSE);
    }
  return Val_long(n);
}
