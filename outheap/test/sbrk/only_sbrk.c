/* SPDX-License-Identifier: MIT */
/* Preloaded (LD_PRELOAD): from the beginning of `main` the process is killed (SIGSYS) when it calls mmap, munmap,
   mremap, madvise or mprotect. malloc is told to do with the break alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

typedef int main_function(int, char **, char **);
static main_function *program;

#define KILLED(number) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static int guarded(int count, char **words, char **environment)
{
  struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    KILLED(SYS_mmap), KILLED(SYS_munmap), KILLED(SYS_mremap), KILLED(SYS_madvise), KILLED(SYS_mprotect),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog all = { sizeof filter / sizeof *filter, filter };
  mallopt(M_MMAP_MAX, 0);
  /* Where others grow the break as well, malloc frees the rest of its last piece when it takes the next one; that can
     trim what it has just taken, and then it says that there is no memory. */
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_ARENA_MAX, 1);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) != 0) {
    puts("skipped: this system has no filters for system calls");
    exit(77);
  }
  return program(count, words, environment);
}

int __libc_start_main(main_function *main, int count, char **words, main_function *init, void (*fini)(void),
                      void (*end)(void), void *stack)
{
  int (*start)(main_function *, int, char **, main_function *, void (*)(void), void (*)(void), void *);
  *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
  program = main;
  return start(guarded, count, words, init, fini, end, stack);
}
