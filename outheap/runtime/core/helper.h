/* SPDX-License-Identifier: MIT */
/* The helper, a thread that marks beside the domains (setting `helper`): its thread, its counters, what it did when,
   and how many processors the process may use. What it does is in overlay/ocaml5/helper_thread.h. */
#ifndef OH_HELPER_H
#define OH_HELPER_H

#include "base.h"
#include "outheap.h"
#include <stdbool.h>

/* Written under the helper's lock or by its thread; read by anyone, relaxed. */
struct oh_helper_counters {
  size_t cycles;      /* cycles that it took part in */
  size_t frugal;      /* of these, those with half of space_overhead (memory=small) */
  size_t words;       /* words that it marked, counted as the marking loop counts them */
  size_t blocks;      /* blocks that it marked */
  size_t pools;       /* pools that it swept */
  size_t swept;       /* words that it freed there */
  size_t given;       /* entries of mark stacks that domains took back from it */
  size_t deferred;    /* continuations and regions that it left to domains */
  size_t backed_off;  /* times that it had too little of a processor */
  size_t overflowed;  /* times that its mark stack became too long */
  size_t paused;      /* times that it was stopped for a fork */
  size_t spans;       /* stretches of work without a wait */
  size_t microseconds;
};
extern struct oh_helper_counters oh_helper_counters;
static inline void oh_helper_count(size_t *counter, size_t n) { (void)oh_fetch_add_relaxed(counter, n); }

/* Notes a stretch of its work (outheap_helper_spans), and counts it. The helper's thread. Its lock is held for some
   instructions at a time, and is the innermost of all. */
void oh_helper_note(bool marks, uint64_t began, uint64_t ended, size_t work);

/* outheap_helper_spans. */
size_t oh_helper_take(struct outheap_helper_span *spans, size_t most);

/* The lock of these two, for a fork: before it, and after it. A child forgets what its parent did. */
void oh_helper_lock_spans(void);
void oh_helper_unlock_spans(bool child);

/* Ends the helper for the rest of the process, also before it has begun; when this returns there is no thread of the
   helper's, whoever else is ending it. Any thread. It waits for some 0.1 ms of processor time of the helper's. */
void oh_helper_end(void);

/* For the helper: what ends a thread that there is, set before the first one is started, and by oh_helper_may_start
   only. Result: may there be one? False for the rest of the process once oh_helper_end was called. */
bool oh_helper_may_start(void (*stop)(void));

/* What a fork does about it, called by start.c: before, after, and after it in the child. Set once, with all three;
   NULL: this process has had no helper. Stored with release: a thread that forks may be any. */
struct oh_helper_fork { void (*before)(void), (*after)(void), (*in_child)(void); };
extern struct oh_helper_fork const *oh_helper_forks;

/* Says once that this runtime has no helper, if the setting wants one. */
void oh_helper_refuse(void);

/* How many processors the process may use at once: the calling thread's affinity, and the quota of its control group,
   which is read once. At least 1. Cost: a system call. */
unsigned oh_helper_processors(void);

#endif
