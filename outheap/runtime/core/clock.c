/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "clock.h"
#include <errno.h>
#include <time.h>

#define S ((uint64_t)1000000000)
#define BEGIN (3600 * S) /* of driven time: no reading is 0 */

static uint64_t read_clock(clockid_t clock)
{
  struct timespec t = { 0, 0 };
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * S + (uint64_t)t.tv_nsec;
}

static struct timespec timespec_of(uint64_t nanoseconds)
{
  return (struct timespec){ .tv_sec = (time_t)(nanoseconds / S), .tv_nsec = (long)(nanoseconds % S) };
}

/* --- driven time -------------------------------------------------------------------------------------------------- */

/* `lock` is the innermost of all. `now` and `used` are written under it, and read by anyone.
     a thread that is on the list, and does not sleep, has something to do at this time: none passes. */
static bool steps; /* set before there is another thread */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed; /* somebody sleeps, or is gone, or has advanced the time */
  struct oh_clock_sleeper *sleepers;
  uint64_t now, used;
  bool advances;
} driven = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .now = BEGIN };

void oh_clock_step(void) { steps = true; }

void oh_clock_lock(void) { pthread_mutex_lock(&driven.lock); }
void oh_clock_unlock(void) { pthread_mutex_unlock(&driven.lock); }

void oh_clock_forked(void)
{
  OH_ASSERT_LOCKED(&driven.lock);
  pthread_cond_init(&driven.changed, NULL);
  driven.sleepers = NULL;
  driven.advances = false;
  oh_store_relaxed(&driven.used, (uint64_t)0);
}

/* Sleeps until then, if that is not past; is awake with 0. */
static bool set_asleep(struct oh_clock_sleeper *s, uint64_t until)
{
  oh_clock_lock();
  s->until = until;
  s->sleeps = until > driven.now;
  bool sleeps = s->sleeps;
  pthread_cond_broadcast(&driven.changed);
  oh_clock_unlock();
  return sleeps;
}

static bool all_sleep(void)
{
  OH_ASSERT_LOCKED(&driven.lock);
  for (struct oh_clock_sleeper *s = driven.sleepers; s != NULL; s = s->next)
    if (!s->sleeps) return false;
  return true;
}

/* Whose time comes first, by then; NULL: nobody's. */
static struct oh_clock_sleeper *first_due(uint64_t then)
{
  OH_ASSERT_LOCKED(&driven.lock);
  struct oh_clock_sleeper *first = NULL;
  for (struct oh_clock_sleeper *s = driven.sleepers; s != NULL; s = s->next)
    if (s->until <= then && (first == NULL || s->until < first->until)) first = s;
  return first;
}

static void wake(struct oh_clock_sleeper *s)
{
  if (s->posted != NULL) {
    sem_post(s->posted);
    return;
  }
  pthread_mutex_lock(s->lock);
  pthread_cond_signal(&s->called);
  pthread_mutex_unlock(s->lock);
}

/* Several threads advance it one after the other. A sleeper's lock comes before the clock's, so it is woken without
   that; it counts as awake before. */
bool oh_clock_advance(uint64_t nanoseconds, uint64_t used)
{
  if (!steps) return false;
  oh_clock_lock();
  while (driven.advances) pthread_cond_wait(&driven.changed, &driven.lock);
  driven.advances = true;
  uint64_t began = driven.now, before = driven.used;
  for (struct oh_clock_sleeper *s;;) {
    while (!all_sleep()) pthread_cond_wait(&driven.changed, &driven.lock);
    s = first_due(began + nanoseconds);
    uint64_t now = s != NULL ? s->until : began + nanoseconds;
    oh_store_relaxed(&driven.now, now);
    if (s == NULL) break;
    oh_store_relaxed(&driven.used, before + (uint64_t)((double)used * (double)(now - began) / (double)nanoseconds));
    s->sleeps = false;
    oh_clock_unlock();
    wake(s);
    oh_clock_lock();
  }
  oh_store_relaxed(&driven.used, before + used);
  driven.advances = false;
  pthread_cond_broadcast(&driven.changed);
  oh_clock_unlock();
  return true;
}

/* --- clocks ------------------------------------------------------------------------------------------------------- */

uint64_t oh_clock_of_machine(void) { return read_clock(CLOCK_MONOTONIC); }
uint64_t oh_clock_now(void) { return steps ? oh_load_relaxed(&driven.now) : oh_clock_of_machine(); }

#ifdef __wasm__ /* there is no other */
uint64_t oh_clock_used(void) { return oh_clock_now(); }
uint64_t oh_clock_used_here(void) { return 0; }
#else
uint64_t oh_clock_used(void) { return steps ? oh_load_relaxed(&driven.used) : read_clock(CLOCK_PROCESS_CPUTIME_ID); }
uint64_t oh_clock_used_here(void) { return steps ? 0 : read_clock(CLOCK_THREAD_CPUTIME_ID); }
#endif

/* --- threads that wait -------------------------------------------------------------------------------------------- */

#define ASSERT_OWN_LOCK(s) OH_ASSERT((s)->lock == NULL || pthread_mutex_trylock((s)->lock) != 0)

void oh_clock_enter(struct oh_clock_sleeper *s)
{
  ASSERT_OWN_LOCK(s);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&s->called, &attributes);
  pthread_condattr_destroy(&attributes);
  s->sleeps = false;
  oh_clock_lock();
  s->next = driven.sleepers;
  driven.sleepers = s;
  oh_clock_unlock();
}

void oh_clock_leave(struct oh_clock_sleeper *s)
{
  ASSERT_OWN_LOCK(s);
  oh_clock_lock();
  struct oh_clock_sleeper **at = &driven.sleepers;
  while (*at != NULL && *at != s) at = &(*at)->next;
  if (*at != NULL) *at = s->next;
  pthread_cond_broadcast(&driven.changed);
  oh_clock_unlock();
}

/* Semaphores count by the time of day: if that is set, one wait is wrong. */
static bool sleep_at_semaphore(sem_t *posted, uint64_t until)
{
  struct timespec then = { 0, 0 };
  uint64_t now = oh_clock_of_machine();
  if (until != OH_CLOCK_NEVER) then = timespec_of(read_clock(CLOCK_REALTIME) + (until > now ? until - now : 0));
  int done;
  do done = until == OH_CLOCK_NEVER ? sem_wait(posted) : sem_timedwait(posted, &then);
  while (done != 0 && errno == EINTR);
  return done == 0;
}

static bool sleep_really(struct oh_clock_sleeper *s, uint64_t until)
{
  if (s->posted != NULL) return sleep_at_semaphore(s->posted, until);
  if (until == OH_CLOCK_NEVER) return pthread_cond_wait(&s->called, s->lock) == 0;
  struct timespec then = timespec_of(until);
  return pthread_cond_timedwait(&s->called, s->lock, &then) == 0;
}

bool oh_clock_sleep(struct oh_clock_sleeper *s, uint64_t until)
{
  ASSERT_OWN_LOCK(s);
  if (!steps) return sleep_really(s, until);
  if (set_asleep(s, until)) (void)sleep_really(s, OH_CLOCK_NEVER);
  (void)set_asleep(s, 0);
  return oh_clock_now() < until;
}

void oh_clock_await(struct oh_clock_sleeper *s, uint64_t nanoseconds)
{
  OH_ASSERT_LOCKED(s->lock);
  (void)sleep_really(s, oh_clock_of_machine() + nanoseconds);
}

void oh_clock_call(struct oh_clock_sleeper *s)
{
  ASSERT_OWN_LOCK(s);
  pthread_cond_signal(&s->called);
  if (steps) (void)set_asleep(s, 0);
}
