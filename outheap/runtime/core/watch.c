/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "watch.h"
#include "clock.h"
#include "service.h"
#include "settings.h"
#include "stats.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool watching;
static bool ends; /* atomic */
static sem_t wanted;
static struct oh_clock_sleeper sleeper = { .posted = &wanted };
static uint64_t began;

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
  uint64_t every = oh_settings.stats_every;
  if (!oh_clock_sleep(&sleeper, every != 0 ? oh_clock_now() + every : OH_CLOCK_NEVER)) return false;
  while (sem_trywait(&wanted) == 0) {} /* several signals, one answer */
  return true;
}

static void watch(void)
{
  for (;;) {
    char title[100];
    char const *why = wait_for_request() ? "on a signal" : "at an interval";
    if (oh_load_acquire(&ends)) break;
    snprintf(title, sizeof title, "statistics %s: process %ld, %.1f s", why, (long)getpid(),
             (double)(oh_clock_now() - began) / 1e9);
    oh_stats_print(oh_watch_output(), title);
  }
  oh_clock_leave(&sleeper);
}

static struct oh_service service = OH_SERVICE("outheap-stats", watch);

static void start_thread(void)
{
  bool done = sem_init(&wanted, 0, 0) == 0;
  oh_clock_enter(&sleeper);
  if (done && oh_service_start(&service)) return;
  oh_clock_leave(&sleeper);
  oh_log("OUTHEAP: no thread for statistics");
}

static void ask_to_end(void)
{
  if (!watching) return;
  watching = false;
  oh_store_release(&ends, true);
  sem_post(&wanted);
}

void oh_watch_stop(void) { oh_service_end(&service, ask_to_end); }

/* Where statistics go. A program may close all descriptors, as daemons do, and get the same number for a file of its
   own: so it is told by its file, too. `opens` is set by the thread that opens the file again; a child that is made
   meanwhile finds at worst a number that is not of that file. */
static struct {
  int descriptor;
  bool known; /* the next two are set */
  dev_t device;
  ino_t number;
  char name[PATH_MAX + sizeof oh_settings.stats_to]; /* of the file, from the root on; empty: it has none */
} output = { .descriptor = STDERR_FILENO };
static bool opens;

static bool is_output(int descriptor)
{
  struct stat s;
  return fstat(descriptor, &s) == 0 && s.st_dev == output.device && s.st_ino == output.number;
}

static bool set_output(int descriptor)
{
  struct stat s;
  if (fstat(descriptor, &s) != 0) return false;
  output.device = s.st_dev;
  output.number = s.st_ino;
  output.known = true;
  oh_store_relaxed(&output.descriptor, descriptor);
  return true;
}

/* Nobody waits for a reader of a pipe. The number is none of the standard ones, which the program may have closed: what
   is written there by anyone is not for this file. */
static bool open_file(char const *name)
{
  int file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  if (file < 0) return false;
#ifdef F_DUPFD_CLOEXEC
  if (file <= STDERR_FILENO) {
    int other = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(file);
    file = other;
  }
#endif
  if (file >= 0 && fcntl(file, F_SETFL, O_APPEND) != -1 && set_output(file)) return true;
  int error = errno;
  if (file >= 0) close(file);
  errno = error;
  return false;
}

/* A relative name is of the folder in which the program starts. */
static void keep_name(char const *name)
{
  size_t length = 0;
  if (*name != '/') {
    if (getcwd(output.name, PATH_MAX) == NULL) {
      output.name[0] = 0;
      return;
    }
    length = strlen(output.name);
    output.name[length++] = '/';
  }
  strcpy(output.name + length, name);
}

static void open_output(char const *name)
{
  if (strncmp(name, "fd:", 3) == 0) {
    char *end;
    long n = strtol(name + 3, &end, 10);
    bool good = name[3] >= '0' && name[3] <= '9' && *end == 0 && n <= INT_MAX && set_output((int)n);
    if (!good) oh_log("OUTHEAP: no descriptor for statistics: %s", name);
    return;
  }
  if (open_file(name)) keep_name(name);
  else oh_log("OUTHEAP: %s cannot be written: %s", name, errno == ENXIO ? "nobody reads it" : strerror(errno));
}

void oh_watch_start(void)
{
  began = oh_clock_now();
  if (oh_settings.stats_to[0] != 0) open_output(oh_settings.stats_to);
  watching = oh_settings.stats_signals != 0 || oh_settings.stats_every != 0;
  if (!watching) return;
  start_thread();
  struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK };
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 64; i++)
    if (oh_settings.stats_signals >> i & 1) sigaction(i, &action, NULL);
}

/* The descriptor that is not ours any more is left as it is. One thread opens the file again; what others have to say
   meanwhile is lost. */
int oh_watch_output(void)
{
  int descriptor = oh_load_relaxed(&output.descriptor), error = errno;
  if (!output.known || is_output(descriptor)) {
    errno = error;
    return descriptor;
  }
  if (output.name[0] == 0 || __atomic_exchange_n(&opens, true, __ATOMIC_ACQUIRE)) descriptor = -1;
  else {
    descriptor = open_file(output.name) ? output.descriptor : -1;
    __atomic_store_n(&opens, false, __ATOMIC_RELEASE);
  }
  errno = error;
  return descriptor;
}

void oh_watch_forked(void)
{
  __atomic_store_n(&opens, false, __ATOMIC_RELAXED);
  (void)oh_service_forget(&service);
  if (watching) start_thread();
}
