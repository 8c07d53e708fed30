/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "start.h"
#include "address_space.h"
#include "block.h"
#include "clock.h"
#include "pace.h"
#include "header.h"
#include "helper.h"
#include "reclaim.h"
#include "limit.h"
#include "os.h"
#include "pointer.h"
#include "pool.h"
#include "ranges.h"
#include "settings.h"
#include "space.h"
#include "stats.h"
#include "watch.h"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* --- fork --------------------------------------------------------------------------------------------------------- */

/* Fork: all locks are held across it, so that the child finds all structures consistent.

   The reclaim thread's is first, since it collects in the place of a domain, and that takes any other lock; then the
   helper's, which a collection takes and waits for. The report's lock comes before the rest, since its holder waits for
   samplers, and a sampler may call public functions that take any of these. They are taken from the top of LAYERS
   downwards, as everywhere: a function that holds a lock calls lower layers only. */

/* Of this fork; with the reclaim thread's lock. The helper may come between two. */
static struct oh_helper_fork const *helper;

static void before(void)
{
  oh_reclaim_lock();
  helper = oh_load_acquire(&oh_helper_forks);
  if (helper != NULL) helper->before();
  oh_report_lock();
  oh_block_lock();
  oh_pool_lock();
  oh_space_lock_all();
  oh_reserve_lock();
  oh_ranges_lock();
  oh_metadata_lock();
  oh_clock_lock();
  oh_pace_fork();
  oh_space_fork();
}

static void release(bool in_child)
{
  oh_clock_unlock();
  oh_metadata_unlock();
  oh_ranges_unlock();
  oh_reserve_unlock();
  oh_space_unlock_all();
  oh_pool_unlock();
  oh_block_unlock();
  oh_report_unlock();
  if (helper != NULL) (in_child ? helper->in_child : helper->after)();
  oh_reclaim_unlock();
}

static void after(void)
{
  oh_space_fork_done();
  oh_pace_fork_done();
  release(false);
}

static void after_in_child(void)
{
  oh_space_forked();
  oh_clock_forked();
  release(true);
  oh_pace_forked();
  oh_limit_forked();
  oh_reclaim_forked();
  oh_pool_forked();
  oh_report_forked();
  oh_watch_forked();
}

/* Once; by oh_start. */
static void prepare_for_fork(void)
{
  if (pthread_atfork(before, after, after_in_child) != 0) oh_log("no memory to prepare for fork");
}

/* --- start -------------------------------------------------------------------------------------------------------- */

/* A program with more rights than its caller takes no settings from it: those of its executable count. */
static char const *settings_of_caller(void)
{
  char const *list = getenv("OUTHEAP");
  if (list != NULL && oh_os_is_privileged()) {
    oh_log("OUTHEAP is ignored: this program has more rights than its caller (setuid, setgid, capabilities)");
    return NULL;
  }
  return list;
}

static void finish(void)
{
  if (oh_settings.report != 0) oh_log("pointers to foreign memory: %zu", oh_report_count());
  if (oh_settings.stats) oh_stats_print(oh_watch_output(), NULL);
}

/* Runs a second time in the child of a process that forked in the middle of it. */
static void start(void)
{
  static bool prepared;
  if (!prepared) prepare_for_fork();
  prepared = true;
  oh_settings_start(settings_of_caller());
  if (oh_settings.show) {
    oh_settings_show();
    _exit(0);
  }
  if (oh_settings.steps) oh_clock_step();
  unsigned asked = (oh_settings.thp_asked ? 1u << OH_NOTICE_HUGE : 0) |
                   (oh_settings.hugetlb ? 1u << OH_NOTICE_HUGETLB : 0);
  oh_notice_show(oh_settings.warn ? ~0u : asked);
  oh_reserve_start();
  if (oh_settings.marking_table) oh_heap_range_set(0, 0);
  if (oh_settings.reserve != 0 && oh_reserve_ahead(oh_settings.reserve) != 0)
    oh_log("OUTHEAP: could not reserve %zu bytes", oh_settings.reserve);
  oh_limit_start();
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
