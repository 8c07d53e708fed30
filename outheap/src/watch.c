/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "watch.h"
#include "log.h"
#include "settings.h"
#include "stats.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STACK (128 << 10)

static int output = STDERR_FILENO;
static bool watching;
static sem_t wanted;
static struct timespec began;

static double seconds_since(struct timespec const *t)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)(now.tv_sec - t->tv_sec) + (double)(now.tv_nsec - t->tv_nsec) / 1e9;
}

static void on_signal(int number)
{
  int error = errno;
  (void)number;
  sem_post(&wanted);
  errno = error;
}

/* True: it was asked for; false: the interval is over. */
static bool wait_for_request(void)
{
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until); /* which sem_timedwait counts by: if it is set, one interval is wrong */
  until.tv_sec += (time_t)oh_settings.stats_every;
  int done;
  do done = oh_settings.stats_every != 0 ? sem_timedwait(&wanted, &until) : sem_wait(&wanted);
  while (done != 0 && errno == EINTR);
  if (done != 0) return false;
  while (sem_trywait(&wanted) == 0) {} /* several signals, one answer */
  return true;
}

static void *watch(void *unused)
{
  for (;;) {
    char title[100];
    char const *why = wait_for_request() ? "on a signal" : "at an interval";
    snprintf(title, sizeof title, "statistics %s: process %ld, %.1f s", why, (long)getpid(), seconds_since(&began));
    oh_stats_print(output, title);
  }
  return unused;
}

static void start_thread(void)
{
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, before;
  sigfillset(&all);
  bool done = sem_init(&wanted, 0, 0) == 0 && pthread_attr_init(&attributes) == 0;
  if (done) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK > PTHREAD_STACK_MIN ? STACK : PTHREAD_STACK_MIN);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the program's */
    done = pthread_create(&thread, &attributes, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
  }
  if (!done) oh_log("OUTHEAP: no thread for statistics");
}

static void open_output(char const *name)
{
  if (strncmp(name, "fd:", 3) == 0) {
    char *end;
    long n = strtol(name + 3, &end, 10);
    if (name[3] >= '0' && name[3] <= '9' && *end == 0 && n <= INT_MAX && fcntl((int)n, F_GETFD) != -1) output = (int)n;
    else oh_log("OUTHEAP: no descriptor for statistics: %s", name);
    return;
  }
  int file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file >= 0) output = file;
  else oh_log("OUTHEAP: %s cannot be written: %s", name, strerror(errno));
}

void oh_watch_start(void)
{
  clock_gettime(CLOCK_MONOTONIC, &began);
  if (oh_settings.stats_to[0] != 0) open_output(oh_settings.stats_to);
  watching = oh_settings.stats_signal != 0 || oh_settings.stats_every != 0;
  if (!watching) return;
  start_thread();
  if (oh_settings.stats_signal != 0) {
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK };
    sigemptyset(&action.sa_mask);
    if (sigaction(oh_settings.stats_signal, &action, NULL) != 0)
      oh_log("OUTHEAP: signal %d cannot be used for statistics", oh_settings.stats_signal);
  }
}

int oh_watch_output(void) { return output; }

void oh_watch_forked(void)
{
  if (watching) start_thread();
}
