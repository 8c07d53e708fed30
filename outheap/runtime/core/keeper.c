/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "keeper.h"
#include "block.h"
#include "follow.h"
#include "helper.h"
#include "os.h"
#include "pool.h"
#include "settings.h"
#include "space.h"
#include <pthread.h>
#include <time.h>

#define PAUSE ((uint64_t)500000) /* nanoseconds between two slices, in which the program gets its lock back */
#define QUIET 5                  /* looks without anything new, after which it sleeps */

/* `work` is held while it is at work, so that a fork, or the end, waits for that; `mutex` protects the rest. A thread
   that has both took `work` first.
     runs: there is a thread;   oh_keeper_rests <=> it sleeps, or !runs and !stopped. */
static pthread_mutex_t work = PTHREAD_MUTEX_INITIALIZER, mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t called;
static bool runs, stopped;
static pthread_t thread;

enum oh_keeper_found (*oh_keeper_collect)(uint64_t now);
bool oh_keeper_rests = true, oh_keeper_heard;

static size_t give_back(void)
{
  size_t bytes = oh_pool_decay();
  for (int i = 0; i < OH_SPACES; i++) bytes += oh_space_decay(i);
  (void)oh_fetch_add_relaxed(&oh_follow_counters.purged, bytes);
  return bytes;
}

void oh_keeper_trim(void)
{
  (void)oh_fetch_add_relaxed(&oh_follow_counters.purged, oh_pool_trim(1) + oh_block_trim());
}

/* With `mutex`: waits for so long, or until somebody calls (0). */
static void wait_for(uint64_t nanoseconds)
{
  struct timespec until;
  if (nanoseconds == 0) {
    oh_store_relaxed(&oh_keeper_rests, true);
    while (!stopped && oh_load_relaxed(&oh_keeper_rests)) pthread_cond_wait(&called, &mutex);
    return;
  }
  clock_gettime(CLOCK_MONOTONIC, &until);
  nanoseconds += (uint64_t)until.tv_nsec;
  until.tv_sec += (time_t)(nanoseconds / 1000000000);
  until.tv_nsec = (long)(nanoseconds % 1000000000);
  while (!stopped && pthread_cond_timedwait(&called, &mutex, &until) == 0) {}
}

static void *keep(void *unused)
{
  uint64_t tick = oh_settings.idle != 0 && oh_settings.idle / 2 < OH_KEEPER_TICK ? oh_settings.idle / 2 + 1
                                                                                  : OH_KEEPER_TICK;
  uint64_t looked = 0;
  unsigned quiet = 0;
  enum oh_keeper_found found = OH_KEEPER_ACTIVE;
  pthread_mutex_lock(&mutex);
  while (!stopped) {
    if (found == OH_KEEPER_WORKING) wait_for(PAUSE);
    else if (quiet < QUIET) wait_for(tick);
    else {
      wait_for(0);
      quiet = 0;
    }
    if (stopped) break;
    pthread_mutex_unlock(&mutex);
    pthread_mutex_lock(&work);
    uint64_t now = oh_os_now();
    size_t bytes = 0;
    if (now - looked >= OH_KEEPER_TICK - OH_KEEPER_TICK / 16) {
      bytes = give_back();
      looked = now;
    }
    bool heard = oh_load_relaxed(&oh_keeper_heard);
    oh_store_relaxed(&oh_keeper_heard, false);
    found = oh_settings.idle != 0 && oh_keeper_collect != NULL ? oh_keeper_collect(now) : OH_KEEPER_DONE;
    pthread_mutex_unlock(&work);
    pthread_mutex_lock(&mutex);
    if (heard || bytes != 0 || found != OH_KEEPER_DONE) quiet = 0;
    else quiet++;
  }
  pthread_mutex_unlock(&mutex);
  return unused;
}

static void delay(bool delayed) { oh_space_delay(OH_SPACE_POOLS, delayed); }

void oh_keeper_rouse(void)
{
  if (pthread_mutex_trylock(&mutex) != 0) return; /* the next slice will */
  if (stopped) oh_store_relaxed(&oh_keeper_rests, false);
  else if (runs) {
    oh_store_relaxed(&oh_keeper_rests, false);
    pthread_cond_signal(&called);
  }
  else {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&called, &attributes);
    pthread_condattr_destroy(&attributes);
    oh_store_relaxed(&oh_keeper_rests, false);
    runs = oh_helper_thread(&thread, keep);
    if (runs) {
      delay(true);
#ifdef __linux__
      pthread_setname_np(thread, "outheap-keeper");
#endif
    }
    else stopped = true;
  }
  pthread_mutex_unlock(&mutex);
}

void oh_keeper_stop(void)
{
  pthread_mutex_lock(&mutex);
  bool join = runs;
  stopped = true;
  runs = false;
  oh_store_relaxed(&oh_keeper_rests, false);
  if (join) pthread_cond_signal(&called);
  pthread_mutex_unlock(&mutex);
  if (!join) return;
  pthread_join(thread, NULL);
  delay(false);
}

/* Before code of this library goes away: at exit, and with the shared object that it is part of. */
static __attribute__((destructor)) void unload(void) { oh_keeper_stop(); }

void oh_keeper_lock(void)
{
  pthread_mutex_lock(&work);
  pthread_mutex_lock(&mutex);
}

void oh_keeper_unlock(void)
{
  pthread_mutex_unlock(&mutex);
  pthread_mutex_unlock(&work);
}

void oh_keeper_forked(void)
{
  if (!runs) return;
  runs = false;
  oh_store_relaxed(&oh_keeper_rests, !stopped);
  delay(false);
}
