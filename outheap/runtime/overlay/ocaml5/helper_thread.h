/* SPDX-License-Identifier: MIT */
/* Part of major_gc.c: the helper's thread, which sweeps (sweep_queue.h) and marks; its state; how it starts, forks and
   ends. What domains do with it is in helper_domain.h; docs/internals/helper.md has the reasons.

   The helper has a mark stack of its own, and takes entries from an inbox.

     counted   =>   num_domains_to_mark counts one more than the domains with marking_done = 0
     the inbox, the helper's stack, or the list of what it deferred is not empty, or it marks   =>   counted
     the colours change, the heap is compacted or verified   =>   counted = 0: the helper holds no pointer

   The thread calls nothing of the runtime, and does not change `counted`.

   What it never touches: continuations (another thread may be scanning their stack), regions that are tracked or have
   cells, and entries in memory that a library has handed to the marker (OH_SPACE_MARKED). */
#ifndef OH_HELPER_THREAD_H
#define OH_HELPER_THREAD_H

#include "clock.h"
#include "helper.h"
#include "mark_loop.h"
#include "pointer.h"
#include "service.h"
#include "settings.h"
#include "sweeping.h"

/* --- its state ---------------------------------------------------------------------------------------------------- */

/* The thread, and what comes next:
     ABSENT         there is none                          RESTS: a cycle starts it
                                                           ENDED: it is to end, or cannot be had
     RESTS          it waits, or is between two batches    SWEEPS, MARKS: it begins a batch
                                                           ENDED: it is to end
                                                           ABSENT: in the child of a fork
     SWEEPS, MARKS  it is in a batch, without the lock     RESTS: the batch is over
                                                           SWEEPS_LAST, MARKS_LAST: it is to end
     SWEEPS_LAST, MARKS_LAST   in its last batch           ENDED: the batch is over
     ENDED          there is none, or it returns, for the rest of the process
   All change under the lock. A cycle may end while it still says SWEEPS: all pools are back. */
enum oh_helper_state {
  OH_HELPER_ABSENT,
  OH_HELPER_RESTS,
  OH_HELPER_SWEEPS,
  OH_HELPER_MARKS,
  OH_HELPER_SWEEPS_LAST,
  OH_HELPER_MARKS_LAST,
  OH_HELPER_ENDED
};

static inline bool oh_helper_thread_may_become(enum oh_helper_state from, enum oh_helper_state to)
{
  switch (to) {
    case OH_HELPER_ABSENT: return from == OH_HELPER_RESTS;
    case OH_HELPER_RESTS:
      return from == OH_HELPER_ABSENT || from == OH_HELPER_SWEEPS || from == OH_HELPER_MARKS;
    case OH_HELPER_SWEEPS: case OH_HELPER_MARKS: return from == OH_HELPER_RESTS;
    case OH_HELPER_SWEEPS_LAST: return from == OH_HELPER_SWEEPS;
    case OH_HELPER_MARKS_LAST: return from == OH_HELPER_MARKS;
    case OH_HELPER_ENDED: return from != OH_HELPER_SWEEPS && from != OH_HELPER_MARKS && from != OH_HELPER_ENDED;
  }
  return false;
}

/* Its part in this cycle, and what comes next:
     OUT            it has none; domains take what it has   IN, PAUSES
     IN             it gets pools and entries               OUT: the cycle is over, its stack is too long, it is to end,
                                                                 or a domain cannot have its lock
                                                            PAUSES: it had too little of a processor
     PAUSES         until `resumes`                         IN: the time has come; OUT */
enum oh_helper_part { OH_HELPER_OUT, OH_HELPER_IN, OH_HELPER_PAUSES };

enum {
  OH_HELPER_BATCH = 1 << 14,                            /* words that it marks between two looks at its lock */
  OH_HELPER_BATCHES = 16,                               /* batches between two looks at the time */
  OH_HELPER_ROOM = OH_HELPER_BATCH + 4 * OH_MARK_LOOP_QUEUE, /* entries, or deferred values, that a batch may add */
  OH_HELPER_GIVEN = 64,                                 /* entries that a domain takes at a time */
  OH_HELPER_DEFERRED = 64,                              /* deferred values that it takes at a time */
  OH_HELPER_POOLS = 4,                                  /* pools that it takes at a time */
  OH_HELPER_EMPTIED = 64,                               /* empty ones that it gives up in a step of a slice */
  OH_HELPER_BEHIND = 16,                                /* a domain assists when behind by that part of the heap */
  OH_HELPER_TRIES = 1000,                               /* to get its lock between two cycles: some 50 us */
  OH_HELPER_WAIT = 200000,                              /* nanoseconds that it waits at most in a slice */
  OH_HELPER_WINDOW = 20000000,                          /* nanoseconds of which it should have had 5/8 */
  OH_HELPER_PAUSE = 100000000,                          /* nanoseconds that it pauses when it had less; twice as
                                                           long when it has had less again, up to */
  OH_HELPER_PAUSE_LOG_MOST = 5,                         /* so many times */
  OH_HELPER_LATE = 2,                                   /* one slice in so many that is behind: it is too slow */
  OH_HELPER_LOOKS = 8,                                  /* of which it takes this many to tell: few in some cycles */
  OH_HELPER_LAVISH = 4,                                 /* cycles, then, with the program's space_overhead */
  OH_HELPER_HEAP = 4 << 20,                             /* bytes from which on a heap deserves it (auto) */
  OH_HELPER_STACK = 1 << 20                             /* bytes that its stack may always have; and it keeps them */
};

struct oh_helper_thread_values { value *at; uintnat count, size; };

static struct {
  pthread_mutex_t lock;
  pthread_cond_t work, rested;
  /* Under the lock. */
  mark_entry *inbox;
  uintnat inbox_count, inbox_size;
  struct oh_helper_thread_values deferred;
  unsigned forks;  /* it must not begin a batch */
  unsigned lacked; /* windows in turn in which it had too little of a processor */
  uintnat credit;  /* words marked, of which no domain has told the pacer */
  uintnat limit;   /* of its stack, in entries */
  uint64_t resumes; /* when, while it pauses */
  unsigned looks, late; /* slices of this cycle; those that were behind */
  unsigned lavish; /* cycles for which space_overhead stays what it is */
  /* While it marks, the thread's own; otherwise under the lock. */
  struct mark_stack stack;
  struct oh_helper_thread_values own;
  /* Written under the lock, and read without; `part` also changes from IN to OUT without it. */
  enum oh_helper_state state;
  enum oh_helper_part part;
  bool counted;
  bool frugal; /* in this cycle space_overhead is halved, as long as it is IN (memory=small) */
  bool wanted; /* a domain would take entries */
} oh_helper = { .lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER,
                .rested = PTHREAD_COND_INITIALIZER };

static bool oh_helper_thread_enabled; /* set once, between two cycles */
static void oh_helper_thread_run(void);
static struct oh_service oh_helper_thread_service = OH_SERVICE("outheap-helper", oh_helper_thread_run);

static void oh_helper_thread_become(enum oh_helper_state to)
{
  CAMLassert(oh_helper_thread_may_become(oh_helper.state, to));
  oh_store_relaxed(&oh_helper.state, to);
}

/* Is there a thread that may begin a batch? */
static bool oh_helper_thread_exists(void)
{
  enum oh_helper_state s = oh_load_relaxed(&oh_helper.state);
  return s >= OH_HELPER_RESTS && s <= OH_HELPER_MARKS;
}

/* Under the lock. */
static bool oh_helper_thread_marks(void)
{
  return oh_helper.state == OH_HELPER_MARKS || oh_helper.state == OH_HELPER_MARKS_LAST;
}
static bool oh_helper_thread_works(void)
{
  return oh_helper.state >= OH_HELPER_SWEEPS && oh_helper.state <= OH_HELPER_MARKS_LAST;
}

/* --- the thread --------------------------------------------------------------------------------------------------- */

/* There is room: the thread has seen to that before the batch. */
static void oh_helper_thread_defer(value v)
{
  CAMLassert(oh_helper.own.count < oh_helper.own.size);
  oh_helper.own.at[oh_helper.own.count++] = v;
}

/* The report began in the middle of a batch. */
static void oh_helper_thread_report(uintptr_t v) { oh_helper_thread_defer((value)v); }

/* Is this a pointer to a region? Then it is dealt with. While all domains are stopped, a library may give up tracked
   memory, and memory with cells; the helper is not stopped then, and must not touch either. */
static __attribute__((noinline)) bool oh_helper_thread_meets_region(uintptr_t v)
{
  if (!oh_kind_is_region(oh_table_kind(v))) return false;
  uint8_t bits = oh_load_relaxed(&oh_region_reach_bits[v >> OH_CHUNK_LOG]);
  if (v < oh_load_relaxed(&oh_track_limit) || (bits & OH_REGION_CELLS) != 0)
    oh_helper_thread_defer((value)v);
  else oh_region_set_reach_bit(v, OH_REGION_BY_BLOCK);
  return true;
}

static void oh_helper_thread_push(struct mark_stack *stk, value_ptr start, value_ptr end)
{
  CAMLassert(stk->count < stk->size);
  stk->stack[stk->count++] = (mark_entry){ start, end };
}

static void oh_helper_thread_count(uintnat blocks) { oh_helper_count(&oh_helper_counters.blocks, blocks); }

static struct oh_mark_loop_policy const oh_helper_thread_policy = {
  .continuation = oh_helper_thread_defer,
  .meets_region = oh_helper_thread_meets_region,
  .push = oh_helper_thread_push,
  .count = oh_helper_thread_count,
};

static __attribute__((noinline)) intnat oh_helper_thread_mark(struct mark_stack *stk, intnat budget)
{
  struct oh_mark_loop_policy const *p = &oh_helper_thread_policy;
  return oh_heap_range_is_whole() ? oh_mark_loop_run(OH_MARK_LOOP_RANGE, p, stk, budget)
                                  : oh_mark_loop_run(OH_MARK_LOOP_TABLE, p, stk, budget);
}

/* Room for `more` elements. False: no memory. */
static bool oh_helper_thread_grow(void **at, uintnat *size, uintnat count, uintnat more, size_t each)
{
  if (*size - count >= more) return true;
  uintnat wanted = (count + more) * 2;
  void *new = realloc(*at, wanted * each);
  if (new == NULL) return false;
  *at = new;
  *size = wanted;
  return true;
}

static bool oh_helper_thread_has_room(void)
{
  struct mark_stack *s = &oh_helper.stack;
  struct oh_helper_thread_values *own = &oh_helper.own;
  return oh_helper_thread_grow((void **)&s->stack, &s->size, s->count, OH_HELPER_ROOM, sizeof *s->stack)
         && oh_helper_thread_grow((void **)&own->at, &own->size, own->count, OH_HELPER_ROOM, sizeof *own->at);
}

/* Nothing more in this cycle, or until a domain finds that it resumes. What it has, domains take. */
static void oh_helper_thread_leave(enum oh_helper_part part, size_t *why)
{
  oh_helper_count(why, 1);
  oh_store_relaxed(&oh_helper.part, part);
}

/* It has had too little of a processor, or enough, for a window. */
static void oh_helper_thread_judge(bool lacks, uint64_t now)
{
  if (!lacks) {
    oh_helper.lacked = 0;
    return;
  }
  oh_helper.resumes = now + ((uint64_t)OH_HELPER_PAUSE << oh_helper.lacked);
  oh_helper_thread_leave(OH_HELPER_PAUSES, &oh_helper_counters.backed_off);
  if (oh_helper.lacked < OH_HELPER_PAUSE_LOG_MOST) oh_helper.lacked++;
}

/* Gives the older half of its stack, but not more than domains take in some turns: these entries lead to most. */
static void oh_helper_thread_spill(void)
{
  struct mark_stack *s = &oh_helper.stack;
  uintnat n = s->count / 2;
  if (n > 16 * OH_HELPER_GIVEN) n = 16 * OH_HELPER_GIVEN;
  if (n == 0 || oh_helper.inbox_count != 0) return;
  if (!oh_helper_thread_grow((void **)&oh_helper.inbox, &oh_helper.inbox_size, 0, n, sizeof(mark_entry))) return;
  memcpy(oh_helper.inbox, s->stack, n * sizeof(mark_entry));
  memmove(s->stack, s->stack + n, (s->count - n) * sizeof(mark_entry));
  s->count -= n;
  oh_helper.inbox_count = n;
}

/* After a batch, under the lock: what it deferred, domains find. False: no memory, and it stays with the thread, where
   they look, too. */
static void oh_helper_thread_publish(void)
{
  struct oh_helper_thread_values *own = &oh_helper.own, *all = &oh_helper.deferred;
  if (own->count == 0) return;
  if (all->count == 0) {
    struct oh_helper_thread_values v = *all;
    *all = *own;
    *own = v;
    own->count = 0;
    return;
  }
  if (!oh_helper_thread_grow((void **)&all->at, &all->size, all->count, own->count, sizeof(value))) return;
  memcpy(all->at + all->count, own->at, own->count * sizeof(value));
  all->count += own->count;
  own->count = 0;
}

/* A batch, which has begun without the lock, is over; a fork may be waiting for that. */
static void oh_helper_thread_done(void)
{
  bool last = oh_helper.state >= OH_HELPER_SWEEPS_LAST;
  oh_helper_thread_become(last ? OH_HELPER_ENDED : OH_HELPER_RESTS);
  if (oh_helper.forks != 0) pthread_cond_broadcast(&oh_helper.rested);
}

/* Result: words. */
static uintnat oh_helper_thread_mark_batch(void)
{
  intnat left = OH_HELPER_BATCH;
  oh_helper_thread_become(OH_HELPER_MARKS);
  pthread_mutex_unlock(&oh_helper.lock);
  bool room = oh_helper_thread_has_room();
  if (room) left = oh_helper_thread_mark(&oh_helper.stack, OH_HELPER_BATCH);
  pthread_mutex_lock(&oh_helper.lock);
  oh_helper_thread_done();
  uintnat done = (uintnat)(OH_HELPER_BATCH - left);
  oh_helper.credit += done;
  oh_helper_count(&oh_helper_counters.words, done);
  oh_helper_count(&oh_helper_counters.deferred, oh_helper.own.count);
  oh_helper_thread_publish();
  if (!room || oh_helper.stack.count > oh_helper.limit)
    oh_helper_thread_leave(OH_HELPER_OUT, &oh_helper_counters.overflowed);
  return done;
}

static void oh_helper_thread_take_inbox(void)
{
  mark_entry *entries = oh_helper.stack.stack;
  uintnat size = oh_helper.stack.size;
  oh_helper.stack.stack = oh_helper.inbox;
  oh_helper.stack.size = oh_helper.inbox_size;
  oh_helper.stack.count = oh_helper.inbox_count;
  oh_helper.inbox = entries;
  oh_helper.inbox_size = size;
  oh_helper.inbox_count = 0;
}

/* Result: pools. */
static uintnat oh_helper_thread_sweep_batch(void)
{
  oh_helper_thread_become(OH_HELPER_SWEEPS);
  pthread_mutex_unlock(&oh_helper.lock);
  uintnat pools = oh_sweeping_batch();
  pthread_mutex_lock(&oh_helper.lock);
  oh_helper_thread_done();
  return pools;
}

/* What is to be done next. Sweeping is first: allocation waits for it, and marking does not count before
   (oh_helper_domain_look). */
static enum oh_helper_state oh_helper_thread_next(void)
{
  if (oh_load_relaxed(&oh_helper.part) != OH_HELPER_IN || oh_helper.forks != 0) return OH_HELPER_RESTS;
  if (oh_sweeping_waits()) return OH_HELPER_SWEEPS;
  bool marks = !oh_table_reporting() && (oh_helper.stack.count != 0 || oh_helper.inbox_count != 0);
  return marks ? OH_HELPER_MARKS : OH_HELPER_RESTS;
}

/* What it has done since when it last waited, or had something else to do: oh_helper_note. */
struct oh_helper_thread_span { uint64_t began; uintnat work; bool marks; };

static void oh_helper_thread_note(struct oh_helper_thread_span *s, uint64_t now)
{
  if (s->work != 0) oh_helper_note(s->marks, s->began, now, s->work);
  s->began = now;
  s->work = 0;
}

/* Domains take queued pools back at any time, so the task is asked for once. False: there is none. */
static bool oh_helper_thread_work(struct oh_helper_thread_span *s)
{
  enum oh_helper_state task = oh_helper_thread_next();
  if (task == OH_HELPER_RESTS) return false;
  bool marks = task == OH_HELPER_MARKS;
  if (marks != s->marks && s->work != 0) oh_helper_thread_note(s, oh_clock_now());
  s->marks = marks;
  if (!marks) {
    s->work += oh_helper_thread_sweep_batch();
    return true;
  }
  if (oh_helper.stack.count == 0) oh_helper_thread_take_inbox();
  if (oh_load_relaxed(&oh_helper.wanted)) {
    oh_store_relaxed(&oh_helper.wanted, false);
    oh_helper_thread_spill();
  }
  s->work += oh_helper_thread_mark_batch();
  return true;
}

/* Time at work: by the clock, and of a processor. */
struct oh_helper_thread_times { uint64_t wall, cpu; };

static struct oh_helper_thread_times oh_helper_thread_now(void)
{
  return (struct oh_helper_thread_times){ oh_clock_now(), oh_clock_used_here() };
}

/* Adds the time from `from` to `now` to a window. If that is over, a new one begins. Did the helper have less than 5/8
   of a processor in it? */
static void oh_helper_thread_watch(struct oh_helper_thread_times *window, struct oh_helper_thread_times from,
                             struct oh_helper_thread_times now)
{
  window->wall += now.wall - from.wall;
  window->cpu += now.cpu - from.cpu;
  oh_helper_count(&oh_helper_counters.microseconds, (now.cpu - from.cpu) / 1000);
  if (window->wall < OH_HELPER_WINDOW) return;
  if (oh_settings.helper == OH_SETTINGS_HELPER_AUTO)
    oh_helper_thread_judge(window->cpu < window->wall / 8 * 5, now.wall);
  *window = (struct oh_helper_thread_times){ 0, 0 };
}

/* There is nothing to mark. Gives memory back that long stacks took; the lock is left meanwhile. False: there is
   none. */
static bool oh_helper_thread_shrink(void)
{
  uintnat entries = oh_helper.stack.size + oh_helper.inbox_size;
  if (oh_helper.stack.count != 0 || oh_helper.inbox_count != 0) return false;
  if (entries <= OH_HELPER_STACK / sizeof(mark_entry)) return false;
  mark_entry *stack = oh_helper.stack.stack, *inbox = oh_helper.inbox;
  oh_helper.stack.stack = oh_helper.inbox = NULL;
  oh_helper.stack.size = oh_helper.inbox_size = 0;
  pthread_mutex_unlock(&oh_helper.lock);
  free(stack);
  free(inbox);
  pthread_mutex_lock(&oh_helper.lock);
  return true;
}

static void oh_helper_thread_run(void)
{
  struct oh_helper_thread_times window = { 0, 0 };
  struct oh_helper_thread_times now = { 0, 0 };
  struct oh_helper_thread_span span = { 0, 0, false };
  oh_report_defer = oh_helper_thread_report;
  pthread_mutex_lock(&oh_helper.lock);
  for (;;) {
    while (oh_helper.state != OH_HELPER_ENDED && oh_helper_thread_next() == OH_HELPER_RESTS) {
      oh_helper_thread_note(&span, now.wall);
      if (!oh_helper_thread_shrink()) pthread_cond_wait(&oh_helper.work, &oh_helper.lock);
    }
    if (oh_helper.state == OH_HELPER_ENDED) break;
    struct oh_helper_thread_times began = oh_helper_thread_now();
    if (span.work == 0) span.began = began.wall;
    for (unsigned i = 0; i < OH_HELPER_BATCHES && oh_helper_thread_work(&span); i++) continue;
    now = oh_helper_thread_now();
    oh_helper_thread_watch(&window, began, now);
  }
  oh_helper_thread_note(&span, now.wall);
  pthread_mutex_unlock(&oh_helper.lock);
}

/* --- its life ----------------------------------------------------------------------------------------------------- */

/* The lock is held across a fork, and no batch is under way. The child has what it had, and no thread: its domain
   takes the entries, or gets a helper of its own with the next cycle. */
static void oh_helper_thread_before_fork(void)
{
  pthread_mutex_lock(&oh_helper.lock);
  oh_helper.forks++;
  if (oh_helper_thread_works()) oh_helper_count(&oh_helper_counters.paused, 1);
  while (oh_helper_thread_works()) pthread_cond_wait(&oh_helper.rested, &oh_helper.lock);
  oh_sweeping_lock();
  oh_helper_lock_spans();
}

static void oh_helper_thread_after_fork(void)
{
  oh_helper_unlock_spans(false);
  oh_sweeping_unlock();
  oh_helper.forks--;
  pthread_cond_signal(&oh_helper.work);
  pthread_mutex_unlock(&oh_helper.lock);
}

static void oh_helper_thread_in_child(void)
{
  oh_helper_unlock_spans(true);
  oh_sweeping_unlock();
  pthread_cond_init(&oh_helper.work, NULL);
  pthread_cond_init(&oh_helper.rested, NULL);
  oh_helper.forks = 0;
  (void)oh_service_forget(&oh_helper_thread_service);
  if (oh_helper.state == OH_HELPER_RESTS) oh_helper_thread_become(OH_HELPER_ABSENT);
  if (oh_helper.part == OH_HELPER_PAUSES) oh_store_relaxed(&oh_helper.part, OH_HELPER_OUT);
  pthread_mutex_unlock(&oh_helper.lock);
}

static void oh_helper_thread_ask_to_end(void)
{
  pthread_mutex_lock(&oh_helper.lock);
  oh_store_relaxed(&oh_helper.part, OH_HELPER_OUT);
  switch (oh_helper.state) {
    case OH_HELPER_ABSENT: case OH_HELPER_RESTS: oh_helper_thread_become(OH_HELPER_ENDED); break;
    case OH_HELPER_SWEEPS: oh_helper_thread_become(OH_HELPER_SWEEPS_LAST); break;
    case OH_HELPER_MARKS: oh_helper_thread_become(OH_HELPER_MARKS_LAST); break;
    default: break;
  }
  pthread_cond_signal(&oh_helper.work);
  pthread_mutex_unlock(&oh_helper.lock);
}

static void oh_helper_thread_end(void) { oh_service_end(&oh_helper_thread_service, oh_helper_thread_ask_to_end); }

/* Before code of this library goes away: at exit, and with the shared object that it is part of. */
static __attribute__((destructor)) void oh_helper_thread_unload(void)
{
  oh_helper_end();
}

static void oh_helper_thread_start(void)
{
  static bool tried;
  if (oh_settings.helper == OH_SETTINGS_HELPER_OFF || tried) return;
  tried = true;
  static struct oh_helper_fork const forks = { oh_helper_thread_before_fork, oh_helper_thread_after_fork,
                                               oh_helper_thread_in_child };
  oh_store_release(&oh_helper_forks, &forks);
  oh_helper_thread_enabled = oh_helper_may_start(oh_helper_thread_end);
}

#endif
