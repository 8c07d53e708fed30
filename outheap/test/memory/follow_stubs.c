/* SPDX-License-Identifier: MIT */
/* A thread that OCaml does not know, and that forks. The end of the reclaim thread while it asks domains for slices.
   What khugepaged does, at once. */
#include "collapse.h"
#include <caml/mlvalues.h>
#include <caml/signals.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
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

extern bool oh_cycle_requested; /* of the runtime */
void outheap_stop_helper(void);

bool oh_clock_advance(uint64_t nanoseconds, uint64_t used);

static bool asks(void) { return __atomic_load_n(&oh_cycle_requested, __ATOMIC_RELAXED); }

static atomic_bool passed;

static void *pass_time(void *unused)
{
  oh_clock_advance(5000000000, 0);
  passed = true;
  return unused;
}

/* All domains are in blocking sections. Result: has it asked before anyone could see it? Has it been ended, and asks no
   more, or still? */
value follow_stop_while_it_asks(value unit)
{
  (void)unit;
  enum { MISSED, STOPPED, ASKS } found = MISSED;
  pthread_t thread;
  caml_enter_blocking_section();
  passed = false;
  if (pthread_create(&thread, NULL, pass_time, NULL) != 0) perror("no thread"), _exit(1);
  while (!asks() && !passed) sched_yield();
  if (asks()) {
    outheap_stop_helper();
    found = asks() ? ASKS : STOPPED;
  }
  pthread_join(thread, NULL);
  caml_leave_blocking_section();
  return Val_int(found);
}

value follow_collapse(value unit) { return (void)unit, Val_long(collapse_all()); }
