/* SPDX-License-Identifier: MIT */
/* A soft limit on the memory of the process (setting `limit`).

   *What counts* is what only this process has in memory, or in swap: the heap, malloc's memory, bigarrays, regions, not
   files that are mapped. The system says it (/proc/self/statm), so nothing depends on what programs declare. That file
   stays open. Where it cannot be read any more, what is used is estimated, from what the heap has grown by since then
   and from the peak of the process, and that is said once.

   *What happens.* Room is what may still be allocated: the limit, less what is used, plus what is free in pools or was
   freed and not given back yet. When more than half of the limit (OH_LIMIT_FROM) is in use, a share of a cycle is due
   for each byte that is allocated: so much that the cycle ends while there is room. The less room there is, the more
   cycles there are. Near the limit, compaction and free memory going back come at the end of a cycle, whatever the
   limits on pauses say, unless Gc.max_overhead forbids compaction.

   *What it costs.* A domain spends at most OH_LIMIT_SHARE of its time in slices for the sake of the limit; what the
   collector does without it comes on top. When live data need more than the limit, the program goes on, and says so
   once.

   *A control group's limit* is hard: beyond it the system ends the process. So a margin is left below it, one part in
   OH_LIMIT_MARGIN at least, and what was seen to be used beyond that; in the margin a domain spends
   OH_LIMIT_SHARE_HARD of its time. A slice does all that is due: many domains allocate much between two of its.

   *Large blocks* would be there before the next slice. So before one is allocated that would pass the limit, free
   memory goes back, and whole cycles are done, as far as the share of time allows. So are they with several domains
   when the limit is passed; they have a share of all time in common.

   One thread at a time calls each of these functions for a slot, which is a domain, or it is said otherwise. */
#ifndef OH_LIMIT_H
#define OH_LIMIT_H

#include "base.h"
#include <stdbool.h>

#define OH_LIMIT_SLOTS 128
#define OH_LIMIT_FROM 2  /* one part in so many of the limit, below which nothing happens */
#define OH_LIMIT_SHARE 2 /* one part in so many of the time */
#define OH_LIMIT_SHARE_HARD 15 / 16
#define OH_LIMIT_MARGIN 16
#define OH_LIMIT_MARGIN_MOST 4
#define OH_LIMIT_LARGE 64 /* one part in so many of the limit is a large block */
#define OH_LIMIT_MALLOC 50

/* Read by anyone, relaxed. */
struct oh_limit_counters {
  size_t hurried;   /* slices that had more to do because of the limit */
  size_t held;      /* that would have had, but for the share of time */
  size_t compacted; /* ends of cycles at which the heap was compacted, with a limit, without being asked for */
  size_t exceeded;  /* ends of cycles at which more was in use */
};
extern struct oh_limit_counters oh_limit_counters;

/* The limit in bytes; 0: there is none. From the settings, once, by oh_start; a limit that cannot be found is reported,
   and there is none. Also finds oh_settings.floor if that is a share: of what the machine has left (MemAvailable), or
   of what the control group, or the limit, allows, if that is less. */
void oh_limit_start(void);
extern size_t oh_limit_bytes;

/* So many cycles are due for as many bytes as there is room (default 1.25): more where garbage waits for longer. Set
   before the first slice. */
extern double oh_limit_ahead;

/* This runtime cannot keep a limit or a floor: says so, if there is one, and forgets it. */
void oh_limit_refuse(void);

/* What counts, now, in bytes; an estimate where the system does not tell; never 0. Any thread. Cost: four system calls,
   and a lock for each part of the heap. */
size_t oh_limit_used(void);

/* malloc gives back what it keeps. How much that is nobody tells beforehand, so each time is measured: one part in
   OH_LIMIT_MALLOC of the time is spent on it at most, and less after those that gave back next to nothing; or as the
   program has asked for it. Any thread. Result: bytes. */
size_t oh_limit_trim_malloc(bool asked);

/* In the child, after a fork. */
void oh_limit_forked(void);

/* A slice begins. `allocated`: bytes in the domain's major heap since the last; `free`: in the domain's pools. Result:
   the share of a cycle that is due, for what all domains have allocated. Cost: every two milliseconds that of
   oh_limit_used. */
double oh_limit_due(unsigned slot, size_t allocated, size_t free, uint64_t now);

/* So much is about to be allocated in one block. Is a cycle to end first? Gives free memory back if that is not enough
   room. Cost: that of oh_limit_used, and more near the limit; none for smaller blocks. */
bool oh_limit_exceeds(unsigned slot, size_t bytes, uint64_t now);
static inline bool oh_limit_is_large(size_t bytes)
{
  return oh_limit_bytes != 0 && bytes >= oh_limit_bytes / OH_LIMIT_LARGE;
}

/* And ends: it took so long. */
void oh_limit_slice(unsigned slot, uint64_t now, uint64_t nanoseconds);

/* Has that looked at what is used, and found more than there should be? Then one of several domains ends the cycle,
   if oh_limit_exceeds says so: slices of a share each come too late where the others go on meanwhile. Any thread. */
bool oh_limit_is_passed(void);

/* All domains were stopped for so long, by the slot's, to end cycles. */
void oh_limit_stopped(unsigned slot, uint64_t now, uint64_t nanoseconds);

/* The domain ends: the next one with its number begins anew. */
void oh_limit_leave(unsigned slot);

/* A cycle has ended, all domains are stopped; `free`: in the pools of all. Is the heap to be compacted for the sake of
   the limit? `took`: nanoseconds of the last compaction. */
bool oh_limit_cycle(size_t live, size_t free, uint64_t now);
/* The heap has been compacted, asked for or not: this is free in the pools of all now. */
void oh_limit_moved(size_t free);
void oh_limit_compacted(uint64_t now, uint64_t nanoseconds);

/* After that, when all run again: what malloc keeps goes back near the limit. Result: is free memory of the heap to go
   back, too? Also says once that the limit does not hold. */
bool oh_limit_wants_memory(void);

/* Tests: the peak of the process, with files in place of the system's (proc.h). */
#ifdef OH_FAULTS
extern size_t oh_limit_peak;
/* In place of oh_os_trim_malloc. NULL: that. */
extern void (*oh_limit_malloc)(void);
#endif

#endif
