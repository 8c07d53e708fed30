/* SPDX-License-Identifier: MIT */
/* The reclaim thread (setting memory=follow): a thread that gives memory back when it has been free for some time, and
   that lets a program which is idle be collected. It exists in processes with a heap from OH_PACE_LEAST on, and blocks
   all signals.

   It wakes every OH_RECLAIM_TICK. When nothing has happened for a while it sleeps, but for a look once in memory.idle,
   if that is longer: a program may drop much without a slice. It gives back when the program has worked for half of a
   tick meanwhile, or three have passed: what matters is how far the program has come, which on a busy machine takes
   longer. What has not been needed since the last look but one goes back: whole large pages, except for what `keep`
   says of each space, and parts of large pages that are mostly free, or in small pages. Before there is a
   reclaim thread, and without it, memory goes back as space_memory.h says; with it, the space of pools gives back
   nothing at once. */
#ifndef OH_RECLAIM_H
#define OH_RECLAIM_H

#include "base.h"
#include <stdbool.h>

#define OH_RECLAIM_TICK ((uint64_t)1000000000) /* nanoseconds */

enum oh_reclaim_found {
  OH_RECLAIM_ACTIVE,  /* the program runs, or has just run */
  OH_RECLAIM_WORKING, /* it is idle, and there is more to do */
  OH_RECLAIM_REQUESTED,  /* the same, and other threads are doing it */
  OH_RECLAIM_DONE     /* there is nothing to do until it runs again */
};

/* What is to be done for an idle program, a slice at a time; NULL: nothing. Called by the reclaim thread, without a
   lock of this library but the reclaim thread's own; with 0 when it ends. Set before the first oh_reclaim_wake. */
extern enum oh_reclaim_found (*oh_reclaim_collect)(uint64_t now);

/* In a child of a fork whose parent had a reclaim thread: sees to it that oh_reclaim_wake is called when the child
   first waits, as a daemon may do without a slice. A child that executes another program at once gets no thread. NULL:
   nothing is done, and the next slice starts the reclaim thread. Set before the first oh_reclaim_wake. */
extern void (*oh_reclaim_await)(void);

/* Nanoseconds of processor time that all other threads have used, for oh_reclaim_collect. */
uint64_t oh_reclaim_others(void);

/* For oh_reclaim_collect: once that has returned, all memory that is free goes back, malloc's too. */
void oh_reclaim_trim(void);

/* The program runs: called in each slice of the collector, by any thread. The first call starts the thread. */
void oh_reclaim_rouse(void);
extern bool oh_reclaim_rests; /* is there none, or does it sleep? Read relaxed */
extern bool oh_reclaim_heard; /* the program has run since the last look. Relaxed */
static inline void oh_reclaim_wake(void)
{
  if (oh_load_relaxed(&oh_reclaim_rests)) oh_reclaim_rouse();
  else if (!oh_load_relaxed(&oh_reclaim_heard)) oh_store_relaxed(&oh_reclaim_heard, true);
}

/* Ends it for the rest of the process; when this returns there is no such thread, whoever else ends it. Any thread.
   Cost: it may wait for a slice, or for a step in which memory goes back. */
void oh_reclaim_stop(void);

/* For start.c. */
void oh_reclaim_lock(void);
void oh_reclaim_unlock(void);
void oh_reclaim_forked(void); /* in the child */

#endif
