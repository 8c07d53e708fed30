/* SPDX-License-Identifier: MIT */
/* Time: what the library and the variant read of clocks, and where threads of their own wait.

   With debug.clock=step the time is a number in the process, and stands still until the program calls
   oh_clock_advance, which is for tests. That goes from one deadline of these threads to the next, and lets each do what
   is due before time goes on. So a test is idle for two seconds in a step, and finds done what has to be done by then,
   however busy the machine is. A child of a fork goes on from its parent's time; its processor time begins at 0. */
#ifndef OH_CLOCK_H
#define OH_CLOCK_H

#include "base.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

/* Nanoseconds: of a clock that never goes back; of processor time that the process has used, or the calling thread
   alone (cost: a system call). Where a test drives the time, no thread of the library's uses any. */
uint64_t oh_clock_now(void);
uint64_t oh_clock_used(void);
uint64_t oh_clock_used_here(void);

/* As oh_clock_now, but the machine's in any case: for those who wait for a thread that runs. */
uint64_t oh_clock_of_machine(void);

/* A thread of the library's, and where it waits: under `lock` if there is one, else at `posted`. Static. */
struct oh_clock_sleeper {
  pthread_mutex_t *lock;
  sem_t *posted;
  pthread_cond_t called;
  /* where a test drives the time, under the clock's lock */
  uint64_t until;
  bool sleeps;
  struct oh_clock_sleeper *next;
};

#define OH_CLOCK_NEVER UINT64_MAX

/* Before the thread is started; and when it ends, or could not be had. With its lock. */
void oh_clock_enter(struct oh_clock_sleeper *);
void oh_clock_leave(struct oh_clock_sleeper *);

/* In the thread, with its lock, which is left meanwhile: waits until that time, a call or a post; perhaps for less.
   False: the time has come. */
bool oh_clock_sleep(struct oh_clock_sleeper *, uint64_t until);

/* The same, for some nanoseconds, while other threads do what this one has asked for: where a test drives the time, it
   stands still until they have. With a lock only. */
void oh_clock_await(struct oh_clock_sleeper *, uint64_t nanoseconds);

/* Any thread, with the lock of the sleeper. One that waits at a semaphore is called by sem_post. */
void oh_clock_call(struct oh_clock_sleeper *);

/* From now on a test drives the time. By oh_start. */
void oh_clock_step(void);

/* Tests: lets so many nanoseconds pass, in which the process uses so much processor time. Any thread, without a lock,
   and not in a domain's place: what is due may want it. False: the time is the machine's, and nothing was done. */
bool oh_clock_advance(uint64_t nanoseconds, uint64_t used);

/* For start.c. */
void oh_clock_lock(void);
void oh_clock_unlock(void);
void oh_clock_forked(void); /* in the child: its threads are gone */

#endif
