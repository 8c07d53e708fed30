/* SPDX-License-Identifier: MIT */
/* Memory that follows the data (setting `memory`): when a cycle of the collector is due by time, and when the heap is
   compacted without being asked for. What the collector does then is in the overlay; what the reclaim thread does with
   free memory, in reclaim.h.

   *Pace.* A program that promotes nothing has no cycles, and garbage stays. So a share of a cycle is due for each
   piece of running time: a whole one in OH_PACE_PERIOD, or in the time in which cycles cost OH_PACE_SHARE of it,
   if that is longer; what one costs is guessed at first, and from the last one when the heap has grown. The period
   doubles, up to OH_PACE_PERIOD_MOST, whenever a cycle that came by time has freed less than 5 %; it is the shortest
   again after a cycle that has freed more. Time that cycles by time might have cost and did not is saved, up to
   OH_PACE_SAVED: from that, cycles come every OH_PACE_QUICK where they are urgent, that is when one has lasted for
   OH_PACE_STALLED, or came by time, and those before were of use. So what is dropped after a time of little garbage
   goes back within some seconds, and the share is kept in the mean. No slice does more of it than what takes
   OH_PACE_SLICE, or that share of the time since the last slice, or as long as a compaction may: what is due beyond
   that is dropped.

   *Compaction.* At the end of a cycle, if enough is free in pools, the pause is short enough, and compactions cost less
   than OH_PACE_SHARE of the time. The pause is predicted from the live data, which is read once, and from the pools
   that are neither full nor empty, which are emptied; where the second is too much, a part of these pools is enough, if
   there is time to read the others.
   The prediction learns from each compaction. When memory that was given back is taken again soon, it becomes rarer.

   *Forks.* Parent and child share the pages of the heap until one of them writes, and marking writes to all. So in a
   child nothing is collected for the sake of time until two cycles have ended that came by allocation, or its parent
   is gone; and a parent that does nothing more, as one that only waits for its children, is left alone until a cycle
   has ended, or they have. Memory that is free goes back meanwhile, which copies nothing.

   One thread at a time calls each of these functions: all domains are stopped, or it is said otherwise. */
#ifndef OH_PACE_H
#define OH_PACE_H

#include "base.h"
#include <stdbool.h>

#define OH_PACE_SHARE 50                              /* one part in so many of the time */
#define OH_PACE_LEAST ((size_t)16 << 20)              /* bytes: a smaller heap is left as it is, a smaller gain too */
#define OH_PACE_PERIOD ((uint64_t)2500000000)         /* nanoseconds */
#define OH_PACE_PERIOD_MOST ((uint64_t)60000000000)
#define OH_PACE_QUICK ((uint64_t)500000000)
#define OH_PACE_SLICE ((uint64_t)2000000)             /* nanoseconds: about what slices by allocation take */
#define OH_PACE_STALLED ((uint64_t)1000000000)
#define OH_PACE_SAVED ((uint64_t)600000000)           /* what half a minute may cost */
#define OH_PACE_OVERHEAD_NEVER 1000000                /* of Gc.max_overhead */
#define OH_PACE_OVERHEAD 500                          /* what Gc.get says when nobody has set it */

/* The heap at the end of a cycle, after its compaction if there was one, in bytes. What this cycle has found to be
   garbage is in blocks that are not swept yet, and counts as live. */
struct oh_pace_heap {
  size_t live;    /* in blocks, small and large */
  size_t free;    /* in pools, for small blocks */
  size_t partial; /* of pools that have room */
  size_t swept;   /* that this cycle has freed */
  bool pressed;   /* is it to be compacted for the sake of the limit (limit.h)? */
};

/* Read by anyone, relaxed. */
struct oh_pace_counters {
  size_t cycles;      /* cycles that came by time, more than by allocation */
  size_t compactions; /* without being asked for */
  size_t refused;     /* ends of cycles at which the pause would have been too long, or the share of time too large */
  size_t longest;     /* microseconds: the longest pause of such a compaction */
  size_t idle;        /* times that an idle program was collected by the reclaim thread */
  size_t asked;       /* times that all domains of such a program were asked for a slice */
  size_t purged;      /* bytes that the reclaim thread gave back */
};
extern struct oh_pace_counters oh_pace_counters;
extern struct oh_pace_heap oh_pace_heap; /* at the end of the last cycle; read by anyone, relaxed */

/* The share of a cycle that is due for so many nanoseconds in a domain with a heap of so many bytes, one of so many
   that run. Any domain. */
double oh_pace_due(uint64_t nanoseconds, size_t bytes, size_t domains);

/* The share of a cycle of such a heap that takes so long, as a guess: 0 to 1. Any thread. */
double oh_pace_share(uint64_t nanoseconds, size_t bytes);

/* A slice took so much processor time: on a busy machine a cycle is no dearer. In heaps from OH_PACE_LEAST on. Any
   domain. */
void oh_pace_slice(uint64_t nanoseconds);

/* A cycle has ended: which part of the pools with room is to be compacted now, from 0 (nothing) to 1. `idle`: for the
   reclaim thread, which has another limit on pauses. */
double oh_pace_cycle(struct oh_pace_heap const *, uint64_t now, bool idle);

/* It has been done, and took so long. */
void oh_pace_compacted(uint64_t now, uint64_t nanoseconds);

/* This is what a compaction has left, asked for or not. */
void oh_pace_moved(struct oh_pace_heap const *);

/* Bytes that are free in the pools of a domain, which `slot` is the number of. It says so in each slice, and before it
   gives a pool back, so that what is in that is not counted twice; for all it is said at the end of a cycle, after a
   compaction again. One thread at a time for a slot. */
void oh_pace_set_free(unsigned slot, size_t bytes);
/* In the pools of all. Any thread. */
size_t oh_pace_free(void);

/* Has the last cycle left pools that it would have emptied if there had been time for that? For the reclaim thread,
   while nothing is collected. */
bool oh_pace_more(void);

/* An idle program has been collected; its domains are asked for a slice. */
void oh_pace_count_idle(void);
void oh_pace_count_request(void);

/* A fork: before it, after it, and in the child. By the thread that forks. */
void oh_pace_fork(void);
void oh_pace_fork_done(void);
void oh_pace_forked(void);
/* Does this process share its heap with a parent that goes on? Then nothing is due by time. Any thread. Cost: a system
   call in such a process. */
bool oh_pace_shares(void);
/* The same, or has it children, and forked since its last cycle? Then it is not collected when it is idle. For the
   reclaim thread. Cost: a system call in a process that has forked. */
bool oh_pace_may_share(void);

/* Gc.max_overhead: as the program or OCAMLRUNPARAM has set it. 0: compaction at the end of each cycle. Any thread. */
size_t oh_pace_overhead(void);
void oh_pace_set_overhead(size_t percent);
/* The same from the text of OCAMLRUNPARAM (NULL: none), where it is O=NUMBER. */
void oh_pace_read(char const *text);

#endif
