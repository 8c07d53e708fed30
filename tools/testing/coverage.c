/* SPDX-License-Identifier: MIT */
/* Linked into programs of the coverage flavours with --wrap=_exit: the counts are written also when a program aborts,
   or ends by _exit, as children do. */
#include <signal.h>

void __gcov_dump(void);
_Noreturn void __real__exit(int code);
_Noreturn void __wrap__exit(int code);

void __wrap__exit(int code)
{
  __gcov_dump();
  __real__exit(code);
}

static void aborted(int signal)
{
  (void)signal;
  __gcov_dump();
}

__attribute__((constructor)) static void expect_aborts(void) { signal(SIGABRT, aborted); }
