/* SPDX-License-Identifier: MIT */
/* For clock.ml. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <caml/fail.h>
#include <caml/mlvalues.h>
#include <caml/signals.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((weak)) bool oh_clock_advance(uint64_t nanoseconds, uint64_t used); /* of the runtime */

value clock_pass(value seconds, value used)
{
  uint64_t all = (uint64_t)(Double_val(seconds) * 1e9), busy = (uint64_t)(Double_val(used) * 1e9);
  if (oh_clock_advance == NULL) caml_failwith("this runtime has no clock to drive");
  caml_enter_blocking_section();
  bool done = oh_clock_advance(all, busy);
  caml_leave_blocking_section();
  if (!done) caml_failwith("the clock is the machine's: OUTHEAP=debug.clock=step");
  return Val_unit;
}

/* --- other threads ------------------------------------------------------------------------------------------------ */

/* How often a thread has slept and run again; -1: it does not sleep, or is ending. */
static long switches_of(char const *task)
{
  char name[64], line[128], state = 0;
  long all = 0, n;
  snprintf(name, sizeof name, "/proc/self/task/%.20s/status", task);
  FILE *f = fopen(name, "r");
  if (f == NULL) return -1;
  while (fgets(line, sizeof line, f) != NULL) {
    (void)sscanf(line, "State: %c", &state);
    if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1) all += n;
    if (sscanf(line, "nonvoluntary_ctxt_switches: %ld", &n) == 1) all += n;
  }
  fclose(f);
  return state == 'S' ? all : -1;
}

/* Of all other threads; -1: one does not sleep. */
static long all_switches(void)
{
  long sum = 0, one = 0, self = syscall(SYS_gettid);
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *d; tasks != NULL && one >= 0 && (d = readdir(tasks)) != NULL;)
    if (d->d_name[0] != '.' && atol(d->d_name) != self) sum += one = switches_of(d->d_name);
  if (tasks != NULL) closedir(tasks);
  return one < 0 ? -1 : sum;
}

value clock_settle(value unit)
{
  long before, now = -1;
  caml_enter_blocking_section();
  do {
    before = now;
    if (before < 0) usleep(200);
    now = all_switches();
  } while (now < 0 || now != before);
  caml_leave_blocking_section();
  return unit;
}

/* --- time that flows ---------------------------------------------------------------------------------------------- */

static pthread_t thread;
static atomic_bool flows;

static void *flow(void *unused)
{
  while (flows && oh_clock_advance(50000000, 0)) usleep(200);
  return unused;
}

/* Signals are the program's. */
value clock_start(value unit)
{
  sigset_t all, before;
  sigfillset(&all);
  flows = true;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (oh_clock_advance == NULL || pthread_create(&thread, NULL, flow, NULL) != 0) caml_failwith("no clock");
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return unit;
}

value clock_stop(value unit)
{
  caml_enter_blocking_section();
  flows = false;
  pthread_join(thread, NULL);
  caml_leave_blocking_section();
  return unit;
}
