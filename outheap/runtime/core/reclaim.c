/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "reclaim.h"
#include "block.h"
#include "clock.h"
#include "pace.h"
#include "limit.h"
#include "pool.h"
#include "service.h"
#include "settings.h"
#include "space.h"
#include <pthread.h>

#define PAUSE ((uint64_t)500000) /* nanoseconds between two slices, in which the program gets its lock back */
#define QUIET 5                  /* looks without anything new, after which it sleeps */
#define WORK (OH_RECLAIM_TICK / 2) /* nanoseconds of processor time between two looks, */
#define WAIT (3 * OH_RECLAIM_TICK) /* unless so many have passed */

/* `work` is held while it collects, so that a fork, or the end, waits for that; `mutex` protects the rest. A thread
   that has both took `work` first. While memory goes back it has neither: others come in between two steps (space.h).
     runs: there is a thread;   oh_reclaim_rests <=> it sleeps, or !runs and !stopped. */
static pthread_mutex_t work = PTHREAD_MUTEX_INITIALIZER, mutex = PTHREAD_MUTEX_INITIALIZER;
static struct oh_clock_sleeper sleeper = { .lock = &mutex };
static bool runs, stopped;
static void keep(void);
static struct oh_service service = OH_SERVICE("outheap-reclaim", keep);

enum oh_reclaim_found (*oh_reclaim_collect)(uint64_t now);
void (*oh_reclaim_await)(void);
bool oh_reclaim_rests = true, oh_reclaim_heard;

static size_t give_back(void)
{
  size_t bytes = oh_pool_decay();
  for (int i = 0; i < OH_SPACES; i++) bytes += oh_space_decay(i);
  (void)oh_fetch_add_relaxed(&oh_pace_counters.purged, bytes);
  return bytes;
}

static bool trims; /* the reclaim thread's own */

void oh_reclaim_trim(void) { trims = true; }

static void trim(void)
{
  if (!trims) return;
  trims = false;
  size_t bytes = oh_pool_trim(1) + oh_block_trim();
  if (!oh_space_is_over()) bytes += oh_limit_trim_malloc(false);
  (void)oh_fetch_add_relaxed(&oh_pace_counters.purged, bytes);
}

static void wait_for(uint64_t nanoseconds)
{
  OH_ASSERT_LOCKED(&mutex);
  uint64_t until = oh_clock_now() + nanoseconds;
  while (!stopped && oh_clock_sleep(&sleeper, until)) {}
}

/* Sleeps until somebody calls. Where idle programs are collected it wakes now and then all the same,
   since a program may drop much, or lose the children that share its heap, without a slice. Result: has somebody
   called? */
static bool rest(void)
{
  OH_ASSERT_LOCKED(&mutex);
  uint64_t most = oh_settings.idle > OH_RECLAIM_TICK ? oh_settings.idle : OH_RECLAIM_TICK;
  bool looks = oh_settings.idle != 0 && oh_reclaim_collect != NULL;
  uint64_t until = looks ? oh_clock_now() + most : OH_CLOCK_NEVER;
  oh_store_relaxed(&oh_reclaim_rests, true);
  while (!stopped && oh_load_relaxed(&oh_reclaim_rests) && oh_clock_sleep(&sleeper, until)) {}
  bool was_called = !oh_load_relaxed(&oh_reclaim_rests);
  oh_store_relaxed(&oh_reclaim_rests, false);
  return was_called;
}

uint64_t oh_reclaim_others(void)
{
  uint64_t all = oh_clock_used(), own = oh_clock_used_here();
  return all > own ? all - own : 0;
}

/* Is it time for a look? On a busy machine the program needs its memory again later. Only the reclaim thread calls it.
   */
static bool is_time(uint64_t now)
{
  static uint64_t looked, worked;
  if (now - looked < OH_RECLAIM_TICK - OH_RECLAIM_TICK / 16) return false;
  uint64_t work = oh_clock_used();
  if (work - worked < WORK && now - looked < WAIT) return false;
  looked = now;
  worked = work;
  return true;
}

static void delay(bool delayed) { oh_space_delay(OH_SPACE_POOLS, delayed); }

static void keep(void)
{
  uint64_t tick = oh_settings.idle != 0 && oh_settings.idle / 2 < OH_RECLAIM_TICK ? oh_settings.idle / 2 + 1
                                                                                  : OH_RECLAIM_TICK;
  unsigned quiet = 0;
  enum oh_reclaim_found found = OH_RECLAIM_ACTIVE;
  oh_space_ends = &stopped;
  pthread_mutex_lock(&mutex);
  while (!stopped) {
    if (found == OH_RECLAIM_WORKING) wait_for(PAUSE);
    else if (found == OH_RECLAIM_REQUESTED) oh_clock_await(&sleeper, PAUSE);
    else if (quiet < QUIET) wait_for(tick);
    else if (rest()) quiet = 0;
    if (stopped) break;
    pthread_mutex_unlock(&mutex);
    uint64_t now = oh_clock_now();
    size_t bytes = 0;
    bool looks = is_time(now);
    if (looks) bytes = give_back();
    bool heard = oh_load_relaxed(&oh_reclaim_heard);
    oh_store_relaxed(&oh_reclaim_heard, false);
    pthread_mutex_lock(&work);
    found = oh_settings.idle != 0 && oh_reclaim_collect != NULL ? oh_reclaim_collect(now) : OH_RECLAIM_DONE;
    pthread_mutex_unlock(&work);
    trim();
    pthread_mutex_lock(&mutex);
    if (heard || bytes != 0 || found != OH_RECLAIM_DONE) quiet = 0;
    else quiet += looks;
  }
  if (oh_reclaim_collect != NULL) (void)oh_reclaim_collect(0);
  oh_clock_leave(&sleeper);
  pthread_mutex_unlock(&mutex);
  delay(false);
}

void oh_reclaim_rouse(void)
{
  if (pthread_mutex_trylock(&mutex) != 0) return; /* the next slice will */
  if (stopped) oh_store_relaxed(&oh_reclaim_rests, false);
  else if (runs) {
    oh_store_relaxed(&oh_reclaim_rests, false);
    oh_clock_call(&sleeper);
  }
  else {
    oh_clock_enter(&sleeper);
    oh_store_relaxed(&oh_reclaim_rests, false);
    delay(true); /* from now on memory waits for the thread, which ends this */
    runs = oh_service_start(&service);
    if (!runs) {
      delay(false);
      oh_clock_leave(&sleeper);
      stopped = true;
    }
  }
  pthread_mutex_unlock(&mutex);
}

static void ask_to_end(void)
{
  pthread_mutex_lock(&mutex);
  oh_store_relaxed(&stopped, true);
  oh_store_relaxed(&oh_reclaim_rests, false);
  if (runs) oh_clock_call(&sleeper);
  runs = false;
  pthread_mutex_unlock(&mutex);
}

void oh_reclaim_stop(void) { oh_service_end(&service, ask_to_end); }

/* Before code of this library goes away: at exit, and with the shared object that it is part of. */
static __attribute__((destructor)) void unload(void) { oh_reclaim_stop(); }

void oh_reclaim_lock(void)
{
  pthread_mutex_lock(&work);
  pthread_mutex_lock(&mutex);
}

void oh_reclaim_unlock(void)
{
  pthread_mutex_unlock(&mutex);
  pthread_mutex_unlock(&work);
}

void oh_reclaim_forked(void)
{
  if (!oh_service_forget(&service)) return;
  runs = false;
  oh_store_relaxed(&oh_reclaim_rests, !stopped);
  delay(false);
  if (!stopped && oh_reclaim_await != NULL) oh_reclaim_await();
}
