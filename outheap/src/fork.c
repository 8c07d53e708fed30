/* SPDX-License-Identifier: MIT */
#include "fork.h"
#include "block.h"
#include "log.h"
#include "metadata.h"
#include "pool.h"
#include "ranges.h"
#include "report.h"
#include "reserve.h"
#include "space.h"
#include "watch.h"
#include <pthread.h>

static void before(void)
{
  oh_report_lock();
  oh_block_lock();
  oh_pool_lock();
  oh_space_lock_all();
  oh_reserve_lock();
  oh_ranges_lock();
  oh_metadata_lock();
}

static void after(void)
{
  oh_metadata_unlock();
  oh_ranges_unlock();
  oh_reserve_unlock();
  oh_space_unlock_all();
  oh_pool_unlock();
  oh_block_unlock();
  oh_report_unlock();
}

static void after_in_child(void)
{
  after();
  oh_pool_forked();
  oh_report_forked();
  oh_watch_forked();
}

void oh_fork_prepare(void)
{
  if (pthread_atfork(before, after, after_in_child) != 0) oh_log("no memory to prepare for fork");
}
