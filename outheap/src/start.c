/* SPDX-License-Identifier: MIT */
/* The beginning, the end, and what comes after a fork. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "check.h"
#include "lock.h"
#include "report.h"
#include "reserve.h"
#include "settings.h"
#include "stats.h"
#include <pthread.h>
#include <stdlib.h>

#ifdef __GLIBC__
#define environment secure_getenv
#else
#define environment getenv
#endif

static void before_fork(void)
{
  oh_report_lock();
  oh_pools_lock();
  oh_blocks_lock();
  oh_spaces_lock();
  oh_reserve_lock();
  oh_ranges_lock();
  oh_os_lock();
}

static void after_fork(void)
{
  oh_os_unlock();
  oh_ranges_unlock();
  oh_reserve_unlock();
  oh_spaces_unlock();
  oh_blocks_unlock();
  oh_pools_unlock();
  oh_report_unlock();
}

static void after_fork_in_child(void)
{
  after_fork();
  oh_report_forked();
}

static void finish(void)
{
  if (oh_settings.report != 0) oh_say("pointers to foreign memory: %zu", oh_report_count());
  if (oh_settings.stats) oh_stats_print();
}

/* Calls nothing that calls oh_start. May begin a second time in the child of a process that forked in the middle of it. */
static void start(void)
{
  static bool prepared;
  if (!prepared && pthread_atfork(before_fork, after_fork, after_fork_in_child) != 0) oh_say("no memory to prepare for fork");
  prepared = true;
  oh_settings_read(environment("OUTHEAP"));
  oh_reserve_start(oh_settings.base);
  if (oh_settings.reserve != 0 && oh_reserve_ahead(oh_settings.reserve) != 0) oh_say("OUTHEAP: could not reserve %zu bytes", oh_settings.reserve);
  if (oh_settings.report != 0) oh_report_print(oh_settings.report);
  if ((oh_settings.stats || oh_settings.report != 0) && atexit(finish) != 0) oh_say("no memory to print statistics");
}

void oh_start(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start);
}
