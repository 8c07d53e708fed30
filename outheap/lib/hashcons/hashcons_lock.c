/* SPDX-License-Identifier: MIT */
#include "hashcons_lock.h"
#include <pthread.h>
#include <sched.h>
#include <time.h>

bool outheap_hashcons_lock_held;

void outheap_hashcons_lock_wait(void)
{
  struct timespec little = { 0, 50000 };
  for (int i = 0;; i++) {
    if (!__atomic_load_n(&outheap_hashcons_lock_held, __ATOMIC_RELAXED) &&
        !__atomic_exchange_n(&outheap_hashcons_lock_held, true, __ATOMIC_ACQUIRE))
      return;
    if (i >= 1000) nanosleep(&little, NULL);
    else if (i % 50 == 49) sched_yield();
  }
}

void outheap_hashcons_lock_start(void)
{
  (void)pthread_atfork(outheap_hashcons_lock_take, outheap_hashcons_lock_give, outheap_hashcons_lock_give);
}
