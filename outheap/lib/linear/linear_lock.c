/* SPDX-License-Identifier: MIT */
#include "linear_lock.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct outheap_linear_lock lock;

static lock common; /* of what all share; `next`: all locks, which it protects */

static void take(lock *l)
{
  struct timespec little = { 0, 50000 };
  /* Acquire: what the last holder wrote is seen. */
  for (int i = 1; __atomic_exchange_n(&l->held, true, __ATOMIC_ACQUIRE);)
    while (__atomic_load_n(&l->held, __ATOMIC_RELAXED))
      if (++i > 1000) nanosleep(&little, NULL);
      else if (i % 50 == 0) sched_yield();
}

static void give(lock *l) { __atomic_store_n(&l->held, false, __ATOMIC_RELEASE); }

void outheap_linear_lock_take(lock *l) { take(l == NULL ? &common : l); }
void outheap_linear_lock_give(lock *l) { give(l == NULL ? &common : l); }

void outheap_linear_lock_announce(lock *l)
{
  l->next = common.next;
  common.next = l;
}

/* Whoever has the lock of a pool waits for no other; so any order will do. */
static void before_fork(void)
{
  take(&common);
  for (lock *l = common.next; l != NULL; l = l->next) take(l);
}

static void after_fork(void)
{
  for (lock *l = common.next; l != NULL; l = l->next) give(l);
  give(&common);
}

void outheap_linear_lock_start(void) { (void)pthread_atfork(before_fork, after_fork, after_fork); }

void *outheap_linear_lock_lines(size_t bytes)
{
  bytes = OUTHEAP_REGION_ROUND(bytes, OUTHEAP_LINEAR_LINES);
  void *p = aligned_alloc(OUTHEAP_LINEAR_LINES, bytes);
  return p == NULL ? NULL : memset(p, 0, bytes);
}
