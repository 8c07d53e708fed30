/* SPDX-License-Identifier: MIT */
/* Part of major_gc.c: the helper's thread, which sweeps (sweep_queue.h) and marks; its state; how it starts, forks and
   ends. What domains do with it is in helped.h; docs/internals/helper.md has the reasons.

   The helper has a mark stack of its own, and takes entries from an inbox.

     counted   =>   num_domains_to_mark counts one more than the domains with marking_done = 0
     the inbox, the helper's stack, or the list of what it deferred is not empty, or it is busy   =>   counted
     the colours change, the heap is compacted or verified   =>   counted = 0: the helper holds no pointer

   The thread calls nothing of the runtime, and does not change `counted`.

   What it never touches: continuations (another thread may be scanning their stack), regions that are tracked or have
   cells, and entries in memory that a library has handed to the marker (OH_SPACE_MARKED). */
#ifndef OH_HELPING_H
#define OH_HELPING_H

#include "clock.h"
#include "helper.h"
#include "os.h"
#include "pointer.h"
#include "settings.h"
#include "sweeping.h"

/* --- its state ---------------------------------------------------------------------------------------------------- */

enum {
  OH_HELPING_BATCH = 1 << 14,                              /* words that it marks between two looks at its lock */
  OH_HELPING_BATCHES = 16,                                /* batches between two looks at the time */
  OH_HELPING_ROOM = OH_HELPING_BATCH + 4 * OH_MARK_LOOP_QUEUE, /* entries, or deferred values, that a batch may add */
  OH_HELPING_GIVEN = 64,                                   /* entries that a domain takes at a time */
  OH_HELPING_DEFERRED = 64,                                /* deferred values that it takes at a time */
  OH_HELPING_POOLS = 4,                                    /* pools that it takes at a time */
  OH_HELPING_EMPTIED = 64,                                 /* empty ones that it gives up in a step of a slice */
  OH_HELPING_BEHIND = 16,                                  /* a domain assists when behind by that part of the heap */
  OH_HELPING_TRIES = 1000,                                 /* to get its lock between two cycles: some 50 us */
  OH_HELPING_WAIT = 200000,                                /* nanoseconds that it waits at most in a slice */
  OH_HELPING_WINDOW = 20000000,                            /* nanoseconds of which it should have had 5/8 */
  OH_HELPING_PAUSE = 100000000,                            /* nanoseconds that it pauses when it had less; twice as
                                                              long when it has had less again, up to */
  OH_HELPING_PAUSE_LOG_MOST = 5,                           /* so many times */
  OH_HELPING_LATE = 2,                                     /* one slice in so many that is behind: it is too slow */
  OH_HELPING_LOOKS = 8,                                    /* of which it takes this many to tell: few in some cycles */
  OH_HELPING_LAVISH = 4,                                   /* cycles, then, with the program's space_overhead */
  OH_HELPING_HEAP = 4 << 20,                               /* bytes from which on a heap deserves it (auto) */
  OH_HELPING_STACK = 1 << 20                               /* bytes that its stack may always have; and it keeps them */
};

struct oh_helping_values { value *at; uintnat count, size; };

static struct {
  pthread_mutex_t lock;
  pthread_cond_t work, rested;
  pthread_t thread;
  long number; /* of the thread, which writes it */
  long owner;  /* the process that has started it; 0: none. Atomic */
  /* Under the lock. */
  mark_entry *inbox;
  uintnat inbox_count, inbox_size;
  struct oh_helping_values deferred;
  bool quits;      /* it is to end */
  bool busy;       /* it marks */
  bool sweeps;     /* it sweeps, or has put its last pool back and not had the lock since: a cycle may end then */
  bool joins;      /* somebody waits for the end of the thread */
  bool stopped;    /* for ever */
  unsigned forks;  /* it must not begin to mark */
  unsigned lacked; /* windows in turn in which it had too little of a processor */
  uintnat credit;  /* words marked, of which no domain has told the pacer */
  uintnat limit;   /* of its stack, in entries */
  unsigned looks, late; /* slices of this cycle; those that were behind */
  unsigned lavish; /* cycles for which space_overhead stays what it is */
  /* While it is busy, the thread's own; otherwise under the lock. */
  struct mark_stack stack;
  struct oh_helping_values own;
  /* Written under the lock, and read without; false is written to `used` without it, too. */
  bool counted;
  bool runs;   /* there is a thread */
  bool used;   /* in this cycle */
  uint64_t resumes; /* when, if it pauses; 0: it does not */
  bool frugal; /* in this cycle space_overhead is halved, as long as it is used (memory=small) */
  bool wanted; /* a domain would take entries */
} oh_helping = { .lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER,
                .rested = PTHREAD_COND_INITIALIZER };

static bool oh_helping_enabled; /* set once, between two cycles */

/* --- the thread --------------------------------------------------------------------------------------------------- */

/* There is room: the thread has seen to that before the batch. */
static void oh_mark_loop_defer(value v)
{
  CAMLassert(oh_helping.own.count < oh_helping.own.size);
  oh_helping.own.at[oh_helping.own.count++] = v;
}

/* The report began in the middle of a batch. */
static void oh_helping_report(uintptr_t v) { oh_mark_loop_defer((value)v); }

/* Is this a pointer to a region? Then it is dealt with. While all domains are stopped, a library may give up tracked
   memory, and memory with cells; the helper is not stopped then, and must not touch either. */
static __attribute__((noinline)) bool oh_mark_loop_meets_region(uintptr_t v)
{
  if (!oh_kind_is_region(oh_table_kind(v))) return false;
  uint8_t bits = oh_load_relaxed(&oh_region_reach_bits[v >> OH_CHUNK_LOG]);
  if (v < oh_load_relaxed(&oh_track_limit) || (bits & OH_REGION_CELLS) != 0)
    oh_mark_loop_defer((value)v);
  else oh_region_set_reach_bit(v, OH_REGION_BY_BLOCK);
  return true;
}

static void oh_mark_loop_push(struct mark_stack *stk, value_ptr start, value_ptr end)
{
  CAMLassert(stk->count < stk->size);
  stk->stack[stk->count++] = (mark_entry){ start, end };
}

/* Room for `more` elements. False: no memory. */
static bool oh_helping_grow(void **at, uintnat *size, uintnat count, uintnat more, size_t each)
{
  if (*size - count >= more) return true;
  uintnat wanted = (count + more) * 2;
  void *new = realloc(*at, wanted * each);
  if (new == NULL) return false;
  *at = new;
  *size = wanted;
  return true;
}

static bool oh_helping_has_room(void)
{
  struct mark_stack *s = &oh_helping.stack;
  struct oh_helping_values *own = &oh_helping.own;
  return oh_helping_grow((void **)&s->stack, &s->size, s->count, OH_HELPING_ROOM, sizeof *s->stack)
         && oh_helping_grow((void **)&own->at, &own->size, own->count, OH_HELPING_ROOM, sizeof *own->at);
}

/* Nothing more in this cycle, or until a domain finds that it resumes. What it has, domains take. */
static void oh_helping_rest(size_t *why, uint64_t resumes)
{
  oh_helper_count(why, 1);
  oh_store_relaxed(&oh_helping.used, false);
  oh_store_relaxed(&oh_helping.resumes, resumes);
}

/* It has had too little of a processor, or enough, for a window. */
static void oh_helping_judge(bool lacks, uint64_t now)
{
  if (!lacks) {
    oh_helping.lacked = 0;
    return;
  }
  oh_helping_rest(&oh_helper_counters.backed_off, now + ((uint64_t)OH_HELPING_PAUSE << oh_helping.lacked));
  if (oh_helping.lacked < OH_HELPING_PAUSE_LOG_MOST) oh_helping.lacked++;
}

/* Gives the older half of its stack, but not more than domains take in some turns: these entries lead to most. */
static void oh_helping_spill(void)
{
  struct mark_stack *s = &oh_helping.stack;
  uintnat n = s->count / 2;
  if (n > 16 * OH_HELPING_GIVEN) n = 16 * OH_HELPING_GIVEN;
  if (n == 0 || oh_helping.inbox_count != 0) return;
  if (!oh_helping_grow((void **)&oh_helping.inbox, &oh_helping.inbox_size, 0, n, sizeof(mark_entry))) return;
  memcpy(oh_helping.inbox, s->stack, n * sizeof(mark_entry));
  memmove(s->stack, s->stack + n, (s->count - n) * sizeof(mark_entry));
  s->count -= n;
  oh_helping.inbox_count = n;
}

/* After a batch, under the lock: what it deferred, domains find. False: no memory, and it stays with the thread, where
   they look, too. */
static void oh_helping_publish(void)
{
  struct oh_helping_values *own = &oh_helping.own, *all = &oh_helping.deferred;
  if (own->count == 0) return;
  if (all->count == 0) {
    struct oh_helping_values v = *all;
    *all = *own;
    *own = v;
    own->count = 0;
    return;
  }
  if (!oh_helping_grow((void **)&all->at, &all->size, all->count, own->count, sizeof(value))) return;
  memcpy(all->at + all->count, own->at, own->count * sizeof(value));
  all->count += own->count;
  own->count = 0;
}

/* Result: words. */
static uintnat oh_helping_mark_batch(void)
{
  intnat left = OH_HELPING_BATCH;
  oh_helping.busy = true;
  pthread_mutex_unlock(&oh_helping.lock);
  bool room = oh_helping_has_room();
  if (room) left = oh_mark_loop_helping(&oh_helping.stack, OH_HELPING_BATCH);
  pthread_mutex_lock(&oh_helping.lock);
  oh_helping.busy = false;
  uintnat done = (uintnat)(OH_HELPING_BATCH - left);
  oh_helping.credit += done;
  oh_helper_count(&oh_helper_counters.words, done);
  oh_helper_count(&oh_helper_counters.deferred, oh_helping.own.count);
  oh_helping_publish();
  if (!room || oh_helping.stack.count > oh_helping.limit) oh_helping_rest(&oh_helper_counters.overflowed, 0);
  if (oh_helping.forks != 0) pthread_cond_broadcast(&oh_helping.rested);
  return done;
}

static void oh_helping_take_inbox(void)
{
  mark_entry *entries = oh_helping.stack.stack;
  uintnat size = oh_helping.stack.size;
  oh_helping.stack.stack = oh_helping.inbox;
  oh_helping.stack.size = oh_helping.inbox_size;
  oh_helping.stack.count = oh_helping.inbox_count;
  oh_helping.inbox = entries;
  oh_helping.inbox_size = size;
  oh_helping.inbox_count = 0;
}

/* Result: pools. */
static uintnat oh_helping_sweep_batch(void)
{
  oh_helping.sweeps = true;
  pthread_mutex_unlock(&oh_helping.lock);
  uintnat pools = oh_sweeping_batch();
  pthread_mutex_lock(&oh_helping.lock);
  oh_helping.sweeps = false;
  if (oh_helping.forks != 0) pthread_cond_broadcast(&oh_helping.rested);
  return pools;
}

/* Sweeping is first: allocation waits for it, and marking does not count before (oh_helped_look). */
enum oh_helping_task { OH_HELPING_RESTS, OH_HELPING_SWEEPS, OH_HELPING_MARKS };

static enum oh_helping_task oh_helping_next(void)
{
  if (!oh_helping.used || oh_helping.forks != 0) return OH_HELPING_RESTS;
  if (oh_sweeping_waits()) return OH_HELPING_SWEEPS;
  bool marks = !oh_table_reporting() && (oh_helping.stack.count != 0 || oh_helping.inbox_count != 0);
  return marks ? OH_HELPING_MARKS : OH_HELPING_RESTS;
}

/* What it has done since when it last waited, or had something else to do: oh_helper_note. */
struct oh_helping_span { uint64_t began; uintnat work; bool marks; };

static void oh_helping_note(struct oh_helping_span *s, uint64_t now)
{
  if (s->work != 0) oh_helper_note(s->marks, s->began, now, s->work);
  s->began = now;
  s->work = 0;
}

/* Domains take queued pools back at any time, so the task is asked for once. False: there is none. */
static bool oh_helping_work(struct oh_helping_span *s)
{
  enum oh_helping_task task = oh_helping_next();
  if (task == OH_HELPING_RESTS) return false;
  bool marks = task == OH_HELPING_MARKS;
  if (marks != s->marks && s->work != 0) oh_helping_note(s, oh_clock_now());
  s->marks = marks;
  if (!marks) {
    s->work += oh_helping_sweep_batch();
    return true;
  }
  if (oh_helping.stack.count == 0) oh_helping_take_inbox();
  if (oh_load_relaxed(&oh_helping.wanted)) {
    oh_store_relaxed(&oh_helping.wanted, false);
    oh_helping_spill();
  }
  s->work += oh_helping_mark_batch();
  return true;
}

/* Time at work: by the clock, and of a processor. */
struct oh_helping_times { uint64_t wall, cpu; };

static struct oh_helping_times oh_helping_now(void)
{
  return (struct oh_helping_times){ oh_clock_now(), oh_clock_used_here() };
}

/* Adds the time from `from` to `now` to a window. If that is over, a new one begins. Did the helper have less than 5/8
   of a processor in it? */
static void oh_helping_watch(struct oh_helping_times *window, struct oh_helping_times from,
                             struct oh_helping_times now)
{
  window->wall += now.wall - from.wall;
  window->cpu += now.cpu - from.cpu;
  oh_helper_count(&oh_helper_counters.microseconds, (now.cpu - from.cpu) / 1000);
  if (window->wall < OH_HELPING_WINDOW) return;
  if (oh_settings.helper == OH_SETTINGS_HELPER_AUTO)
    oh_helping_judge(window->cpu < window->wall / 8 * 5, now.wall);
  *window = (struct oh_helping_times){ 0, 0 };
}

/* There is nothing to mark. Gives memory back that long stacks took; the lock is left meanwhile. False: there is
   none. */
static bool oh_helping_shrink(void)
{
  uintnat entries = oh_helping.stack.size + oh_helping.inbox_size;
  if (oh_helping.stack.count != 0 || oh_helping.inbox_count != 0) return false;
  if (entries <= OH_HELPING_STACK / sizeof(mark_entry)) return false;
  mark_entry *stack = oh_helping.stack.stack, *inbox = oh_helping.inbox;
  oh_helping.stack.stack = oh_helping.inbox = NULL;
  oh_helping.stack.size = oh_helping.inbox_size = 0;
  pthread_mutex_unlock(&oh_helping.lock);
  free(stack);
  free(inbox);
  pthread_mutex_lock(&oh_helping.lock);
  return true;
}

static void *oh_helping_run(void *unused)
{
  struct oh_helping_times window = { 0, 0 };
  struct oh_helping_times now = { 0, 0 };
  struct oh_helping_span span = { 0, 0, false };
  oh_helping.number = oh_helper_name("outheap-helper");
  oh_report_defer = oh_helping_report;
  pthread_mutex_lock(&oh_helping.lock);
  for (;;) {
    while (!oh_helping.quits && oh_helping_next() == OH_HELPING_RESTS) {
      oh_helping_note(&span, now.wall);
      if (!oh_helping_shrink()) pthread_cond_wait(&oh_helping.work, &oh_helping.lock);
    }
    if (oh_helping.quits) break;
    struct oh_helping_times began = oh_helping_now();
    if (span.work == 0) span.began = began.wall;
    for (unsigned i = 0; i < OH_HELPING_BATCHES && !oh_helping.quits && oh_helping_work(&span); i++) continue;
    now = oh_helping_now();
    oh_helping_watch(&window, began, now);
  }
  oh_helping_note(&span, now.wall);
  pthread_mutex_unlock(&oh_helping.lock);
  return unused;
}

/* --- its life ----------------------------------------------------------------------------------------------------- */

/* The lock is held across a fork, and the helper does not mark. The child has what it had, and no thread: its domain
   takes the entries, or gets a helper of its own with the next cycle. */
static void oh_helping_before_fork(void)
{
  pthread_mutex_lock(&oh_helping.lock);
  oh_helping.forks++;
  if (oh_helping.busy || oh_helping.sweeps) oh_helper_count(&oh_helper_counters.paused, 1);
  while (oh_helping.busy || oh_helping.sweeps) pthread_cond_wait(&oh_helping.rested, &oh_helping.lock);
  oh_sweeping_lock();
  oh_helper_lock_spans();
}

static void oh_helping_after_fork(void)
{
  oh_helper_unlock_spans(false);
  oh_sweeping_unlock();
  oh_helping.forks--;
  pthread_cond_signal(&oh_helping.work);
  pthread_mutex_unlock(&oh_helping.lock);
}

static void oh_helping_in_child(void)
{
  oh_helper_unlock_spans(true);
  oh_sweeping_unlock();
  pthread_cond_init(&oh_helping.work, NULL);
  pthread_cond_init(&oh_helping.rested, NULL);
  oh_helping.forks = 0;
  oh_store_relaxed(&oh_helping.owner, 0L);
  oh_store_relaxed(&oh_helping.resumes, 0);
  oh_helping.runs = oh_helping.quits = oh_helping.joins = false;
  pthread_mutex_unlock(&oh_helping.lock);
}

/* Of several threads that end it one joins its thread, and the others wait for that. A child of which the C library
   knows nothing (clone) has the locks as they were, and no thread; if its number is that of its parent, in another
   space of these, the thread that is missing tells. */
static void oh_helping_end(void)
{
  long owner = oh_load_relaxed(&oh_helping.owner);
  if (owner != 0 && owner != oh_os_process()) return;
  pthread_mutex_lock(&oh_helping.lock);
  oh_helping.stopped = oh_helping.quits = true;
  oh_store_relaxed(&oh_helping.used, false);
  oh_store_relaxed(&oh_helping.resumes, 0);
  if (oh_helping.runs && !oh_helper_is_missing(oh_helping.thread)) {
    pthread_t thread = oh_helping.thread;
    oh_helping.joins = true;
    oh_store_relaxed(&oh_helping.runs, false);
    pthread_cond_signal(&oh_helping.work);
    pthread_mutex_unlock(&oh_helping.lock);
    oh_helper_join(thread, &oh_helping.number);
    pthread_mutex_lock(&oh_helping.lock);
    oh_helping.joins = false;
    pthread_cond_broadcast(&oh_helping.rested);
  }
  while (oh_helping.joins) pthread_cond_wait(&oh_helping.rested, &oh_helping.lock);
  pthread_mutex_unlock(&oh_helping.lock);
}

/* Before code of this library goes away: at exit, and with the shared object that it is part of. */
static __attribute__((destructor)) void oh_helping_unload(void)
{
  oh_helper_end();
}

static void oh_helping_start(void)
{
  static bool tried;
  if (oh_settings.helper == OH_SETTINGS_HELPER_OFF || tried) return;
  tried = true;
  static struct oh_helper_fork const forks = { oh_helping_before_fork, oh_helping_after_fork, oh_helping_in_child };
  oh_store_release(&oh_helper_forks, &forks);
  oh_helping_enabled = oh_helper_may_start(oh_helping_end);
}

#endif
