/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "start.h"
#include "fork.h"
#include "header.h"
#include "log.h"
#include "marked.h"
#include "notice.h"
#include "report.h"
#include "reserve.h"
#include "settings.h"
#include "stats.h"
#include "watch.h"
#include <pthread.h>
#include <stdlib.h>

#ifdef __GLIBC__
#define environment secure_getenv
#else
#define environment getenv
#endif

static void finish(void)
{
  if (oh_settings.report != 0) oh_log("pointers to foreign memory: %zu", oh_report_count());
  if (oh_settings.stats) oh_stats_print(oh_watch_output(), NULL);
}

/* Runs a second time in the child of a process that forked in the middle of it. */
static void start(void)
{
  static bool prepared;
  if (!prepared) oh_fork_prepare();
  prepared = true;
  oh_settings_read(environment("OUTHEAP"));
  if (oh_settings.warn) oh_notice_show(~0u);
  else if (oh_settings.thp_asked) oh_notice_show(1u << OH_NOTICE_HUGE);
  oh_reserve_start(oh_settings.base);
  if (oh_settings.marking_table) oh_marked_start(0, 0);
  if (oh_settings.reserve != 0 && oh_reserve_ahead(oh_settings.reserve) != 0)
    oh_log("OUTHEAP: could not reserve %zu bytes", oh_settings.reserve);
  oh_header_set_opaque(oh_settings.opaque);
  if (oh_settings.report != 0) oh_report_set(oh_settings.report, oh_report_print, NULL);
  if ((oh_settings.stats || oh_settings.report != 0) && atexit(finish) != 0) oh_log("no memory to print statistics");
  oh_watch_start();
}

void oh_start(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start);
}
