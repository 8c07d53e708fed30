/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "service.h"
#include "clock.h"
#include "os.h"
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/resource.h>
#include <sys/syscall.h>
#endif

#define STACK ((size_t)1 << 20)
#define GONE ((uint64_t)5000000000) /* nanoseconds: a number that still is there then is another thread's by now */

static void *begin(void *service)
{
  struct oh_service *s = service;
#ifdef __linux__
  pthread_setname_np(pthread_self(), s->name); /* the thread by itself: that of another one is a file to open */
  s->number = (long)syscall(SYS_gettid);
#endif
  s->run();
  return NULL;
}

bool oh_service_start(struct oh_service *s)
{
  size_t stack = STACK + oh_os_thread_local();
  pthread_attr_t attributes;
  sigset_t all, before;
  if (OH_SBRK || pthread_attr_init(&attributes) != 0) return false;
  sigfillset(&all);
  pthread_attr_setstacksize(&attributes, stack > (size_t)PTHREAD_STACK_MIN ? stack : (size_t)PTHREAD_STACK_MIN);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  s->number = 0;
  s->runs = pthread_create(&s->thread, &attributes, begin, s) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (s->runs) oh_store_relaxed(&s->owner, oh_os_process());
  return s->runs;
}

/* In a child of which the C library knows nothing (clone): it has the thread's name for it, and no thread. */
static bool is_missing(struct oh_service *s)
{
#ifdef __linux__
  return pthread_kill(s->thread, 0) == ESRCH;
#else
  return (void)s, false;
#endif
}

/* Linux takes a thread's number away first and drops the thread's share of the process after that, both under one lock.
   Whoever then reads something of a group of processes waits for that lock, and so for the rest. */
static void join(struct oh_service *s)
{
  pthread_join(s->thread, NULL);
#ifdef __linux__
  int error = errno;
  uint64_t until = oh_clock_of_machine() + GONE;
  while (s->number != 0 && syscall(SYS_tgkill, oh_os_process(), s->number, 0) == 0 && oh_clock_of_machine() <= until)
    sched_yield();
  if (s->number != 0) getpriority(PRIO_PGRP, 0);
  errno = error;
#endif
}

void oh_service_end(struct oh_service *s, void (*ask)(void))
{
  long owner = oh_load_relaxed(&s->owner);
  if (owner != 0 && owner != oh_os_process()) return;
  pthread_mutex_lock(&s->ending);
  ask();
  if (s->runs && !is_missing(s)) join(s);
  s->runs = false;
  pthread_mutex_unlock(&s->ending);
}

bool oh_service_forget(struct oh_service *s)
{
  bool ran = s->runs;
  pthread_mutex_init(&s->ending, NULL);
  oh_store_relaxed(&s->owner, 0L);
  s->runs = false;
  return ran;
}
