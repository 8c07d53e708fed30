/* SPDX-License-Identifier: MIT */
/* Part of major_gc.c: the helper, a thread that sweeps (sweep_queue.h) and marks beside the domains.
   docs/internals/helper.md has the reasons.

   The helper has a mark stack of its own, and takes entries from an inbox. When a cycle begins to mark, and in each
   slice, a domain puts the entries of its own stack there; so it has next to nothing to mark itself. Where a slice has
   to be completed, or marking is behind, it takes entries back (it assists).

     counted   =>   num_domains_to_mark counts one more than the domains with marking_done = 0
     the inbox, the helper's stack, or the list of what it deferred is not empty, or it is busy   =>   counted
     counted changes from 0 to 1 under the lock, by a domain that is counted itself; from 1 to 0 under the lock, by a
     domain in a slice, when all of these are empty and the helper is not at work
     a domain takes entries or deferred values under the lock, and is counted itself before it has them
     the colours change, the heap is compacted or verified   =>   counted = 0: the helper holds no pointer

   The helper calls nothing of the runtime, and no domain waits for it but in a slice that must be completed, for a
   bounded time; to start a fork; and to stop it.

   With memory=small, cycles in which it takes part come sooner, as long as it keeps pace.

   What it never touches: continuations (another thread may be scanning their stack), regions that are tracked or have
   cells, and entries in memory that a library has handed to the marker (OH_SPACE_MARKED). Of the last, Boxroot's pools
   rely on being read by their own domain only; they are found only through each other, from an entry on that domain's
   stack. So entries that lie there stay on the stack. */
#ifndef OH_HELPING_H
#define OH_HELPING_H

#include "helper.h"
#include "page.h"
#include "settings.h"
#include "sweeping.h"
#include <sched.h>
#include <time.h>

#if !OH_HELPER
static void oh_helping_turn(void) { oh_helper_refuse(); }
static void oh_helping_cycle(caml_domain_state *d) { (void)d; }
static void oh_helping_begin(caml_domain_state *d) { (void)d; }
static bool oh_helping_has_swept(int mode) { return (void)mode, true; }
static intnat oh_helping_sweep(intnat budget, int mode)
{
  return (void)mode, caml_sweep(Caml_state->shared_heap, budget);
}
static uintnat oh_helping_percent(uintnat percent) { return percent; }
static void oh_helping_slice(caml_domain_state *d, int mode) { (void)d, (void)mode; }
static intnat oh_helping_mark(intnat budget, int mode) { return (void)mode, mark(budget); }
#else

enum {
  OH_HELPING_BATCH = 1 << 14,                              /* words that it marks between two looks at its lock */
  OH_HELPING_BATCHES = 16,                                /* batches between two looks at the time */
  OH_HELPING_ROOM = OH_HELPING_BATCH + 4 * OH_MARK_LOOP_QUEUE, /* entries, or deferred values, that a batch may add */
  OH_HELPING_GIVEN = 64,                                   /* entries that a domain takes at a time */
  OH_HELPING_DEFERRED = 64,                                /* deferred values that it takes at a time */
  OH_HELPING_POOLS = 4,                                    /* pools that it takes at a time */
  OH_HELPING_EMPTIED = 64,                                 /* empty ones that it gives up in a step of a slice */
  OH_HELPING_BEHIND = 16,                                  /* a domain assists when behind by that part of the heap */
  OH_HELPING_WAIT = 200000,                                /* nanoseconds that it waits at most in a slice */
  OH_HELPING_WINDOW = 20000000,                            /* nanoseconds of which it should have had 5/8 */
  OH_HELPING_RESTS = 2,                                    /* cycles, when it had less */
  OH_HELPING_LATE = 2,                                     /* one slice in so many that is behind: it is too slow */
  OH_HELPING_LAVISH = 4,                                   /* cycles, then, with the program's space_overhead */
  OH_HELPING_HEAP = 4 << 20,                               /* bytes from which on a heap deserves it (auto) */
  OH_HELPING_STACK = 1 << 20,                              /* bytes that its stack may always have */
  OH_HELPING_STACK_SHARE = 32                              /* and the part of the heap */
};

struct oh_helping_values { value *at; uintnat count, size; };

static struct {
  pthread_mutex_t lock;
  pthread_cond_t work, rested;
  pthread_t thread;
  /* Under the lock. */
  mark_entry *inbox;
  uintnat inbox_count, inbox_size;
  struct oh_helping_values deferred;
  bool runs;       /* there is a thread */
  bool quits;      /* it is to end */
  bool busy;       /* it marks */
  bool sweeps;     /* it sweeps, or has put its last pool back and not had the lock since: a cycle may end then */
  bool stopped;    /* for ever */
  unsigned forks;  /* it must not begin to mark */
  unsigned rests;  /* cycles of rest */
  uintnat credit;  /* words marked, of which no domain has told the pacer */
  uintnat limit;   /* of its stack, in entries */
  unsigned looks, late; /* slices of this cycle; those that were behind */
  unsigned lavish; /* cycles for which space_overhead stays what it is */
  /* While it is busy, the thread's own; otherwise under the lock. */
  struct mark_stack stack;
  struct oh_helping_values own;
  /* Written under the lock, and read without. */
  bool counted;
  bool used;   /* in this cycle */
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

static uint64_t oh_helping_clock(clockid_t clock)
{
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool oh_helping_has_room(void)
{
  struct mark_stack *s = &oh_helping.stack;
  struct oh_helping_values *own = &oh_helping.own;
  return oh_helping_grow((void **)&s->stack, &s->size, s->count, OH_HELPING_ROOM, sizeof *s->stack)
         && oh_helping_grow((void **)&own->at, &own->size, own->count, OH_HELPING_ROOM, sizeof *own->at);
}

/* Nothing more in this cycle. What it has, domains take. */
static void oh_helping_rest(size_t *why, unsigned cycles)
{
  oh_helper_count(why, 1);
  oh_store_relaxed(&oh_helping.used, false);
  if (oh_helping.rests < cycles) oh_helping.rests = cycles;
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

static bool oh_helping_may_mark(void)
{
  return !oh_table_reporting() && (oh_helping.stack.count != 0 || oh_helping.inbox_count != 0);
}

static bool oh_helping_may_work(void)
{
  return oh_helping.used && oh_helping.forks == 0 && (oh_sweeping_waits() || oh_helping_may_mark());
}

/* What it has done since when it last waited, or had something else to do: oh_helper_note. */
struct oh_helping_span { uint64_t began; uintnat work; bool marks; };

static void oh_helping_note(struct oh_helping_span *s, uint64_t now)
{
  if (s->work != 0) oh_helper_note(s->marks, s->began, now, s->work);
  s->began = now;
  s->work = 0;
}

/* Sweeping is first: allocation waits for it, and marking does not count before (oh_helping_look). */
static void oh_helping_work(struct oh_helping_span *s)
{
  bool marks = !oh_sweeping_waits();
  if (marks != s->marks && s->work != 0) oh_helping_note(s, oh_helping_clock(CLOCK_MONOTONIC));
  s->marks = marks;
  if (!marks) {
    s->work += oh_helping_sweep_batch();
    return;
  }
  if (oh_helping.stack.count == 0) oh_helping_take_inbox();
  if (oh_load_relaxed(&oh_helping.wanted)) {
    oh_store_relaxed(&oh_helping.wanted, false);
    oh_helping_spill();
  }
  s->work += oh_helping_mark_batch();
}

/* Time at work: by the clock, and of a processor. */
struct oh_helping_times { uint64_t wall, cpu; };

static struct oh_helping_times oh_helping_now(void)
{
  return (struct oh_helping_times){ oh_helping_clock(CLOCK_MONOTONIC), oh_helping_clock(CLOCK_THREAD_CPUTIME_ID) };
}

/* Adds the time from `from` to `now` to a window. Did the helper have less than 5/8 of a processor in it? Then a new
   one begins. */
static bool oh_helping_lacks(struct oh_helping_times *window, struct oh_helping_times from,
                             struct oh_helping_times now)
{
  window->wall += now.wall - from.wall;
  window->cpu += now.cpu - from.cpu;
  oh_helper_count(&oh_helper_counters.microseconds, (now.cpu - from.cpu) / 1000);
  if (window->wall < OH_HELPING_WINDOW) return false;
  bool lacks = window->cpu < window->wall / 8 * 5;
  *window = (struct oh_helping_times){ 0, 0 };
  return lacks;
}

static void *oh_helping_run(void *unused)
{
  struct oh_helping_times window = { 0, 0 };
  struct oh_helping_times now = { 0, 0 };
  struct oh_helping_span span = { 0, 0, false };
  pthread_mutex_lock(&oh_helping.lock);
  for (;;) {
    while (!oh_helping.quits && !oh_helping_may_work()) {
      oh_helping_note(&span, now.wall);
      pthread_cond_wait(&oh_helping.work, &oh_helping.lock);
    }
    if (oh_helping.quits) break;
    struct oh_helping_times began = oh_helping_now();
    if (span.work == 0) span.began = began.wall;
    for (unsigned i = 0; i < OH_HELPING_BATCHES && !oh_helping.quits && oh_helping_may_work(); i++)
      oh_helping_work(&span);
    now = oh_helping_now();
    if (oh_helping_lacks(&window, began, now) && oh_settings.helper == OH_SETTINGS_HELPER_AUTO)
      oh_helping_rest(&oh_helper_counters.backed_off, OH_HELPING_RESTS);
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
  oh_helping.runs = oh_helping.quits = false;
  pthread_mutex_unlock(&oh_helping.lock);
}

static void oh_helping_end(void)
{
  pthread_mutex_lock(&oh_helping.lock);
  oh_helping.stopped = true;
  oh_store_relaxed(&oh_helping.used, false);
  bool join = oh_helping.runs;
  pthread_t thread = oh_helping.thread;
  oh_helping.runs = false; /* of two threads that stop it one joins */
  oh_helping.quits = true;
  pthread_cond_signal(&oh_helping.work);
  pthread_mutex_unlock(&oh_helping.lock);
  if (join) pthread_join(thread, NULL);
}

/* Before code of this library goes away: at exit, and with the shared object that it is part of. */
static __attribute__((destructor)) void oh_helping_unload(void)
{
  if (oh_helping_enabled) oh_helping_end();
}

static void oh_helping_start(void)
{
  static bool tried;
  if (oh_settings.helper == OH_SETTINGS_HELPER_OFF || tried) return;
  tried = true;
  static struct oh_helper_fork const forks = { oh_helping_before_fork, oh_helping_after_fork, oh_helping_in_child };
  oh_store_release(&oh_helper_forks, &forks);
  oh_helper_stop = oh_helping_end;
  oh_helping_enabled = true;
}

/* Between two cycles, by one thread while all domains are stopped: is the next one to have a helper? */
static void oh_helping_turn(void)
{
  oh_helping_start();
  if (!oh_helping_enabled) return;
  pthread_mutex_lock(&oh_helping.lock); /* the helper does not mark, and so holds it for a moment at most */
  OH_CHECK(!oh_helping.counted && !oh_helping.busy && oh_helping.stack.count == 0 && oh_helping.inbox_count == 0
           && oh_helping.deferred.count == 0 && oh_helping.own.count == 0 && oh_sweeping_is_idle());
  uintnat bytes = caml_heap_size(Caml_state->shared_heap);
  bool use = !oh_helping.stopped && bytes != 0;
  if (use && oh_settings.helper == OH_SETTINGS_HELPER_AUTO) {
    if (oh_helping.rests != 0) {
      oh_helping.rests--;
      use = false;
    }
    else use = bytes >= OH_HELPING_HEAP && oh_helper_processors() > (uintnat)atomic_load(&caml_num_domains_running);
  }
  if (use && !oh_helping.runs) {
    oh_helping.runs = oh_helper_thread(&oh_helping.thread, oh_helping_run);
    if (!oh_helping.runs) {
      oh_log("no thread for the helper");
      oh_helping.stopped = true;
      use = false;
    }
  }
  uintnat stack = bytes / OH_HELPING_STACK_SHARE;
  if (stack < OH_HELPING_STACK) stack = OH_HELPING_STACK;
  if (oh_settings.helper_stack != 0) stack = oh_settings.helper_stack;
  oh_helping.limit = stack / sizeof(mark_entry);
  oh_helping.credit = 0;
  oh_store_relaxed(&oh_helping.wanted, false);
  oh_store_relaxed(&oh_helping.used, use);
  /* Where the helper does not keep pace, more work would be the domains'. */
  if (oh_helping.late * OH_HELPING_LATE > oh_helping.looks) oh_helping.lavish = OH_HELPING_LAVISH;
  else if (oh_helping.lavish != 0) oh_helping.lavish--;
  oh_helping.late = oh_helping.looks = 0;
  bool frugal = use && oh_settings.frugal && oh_helping.lavish == 0;
  oh_store_relaxed(&oh_helping.frugal, frugal);
  if (frugal) oh_helper_count(&oh_helper_counters.frugal, 1);
  if (use) oh_helper_count(&oh_helper_counters.cycles, 1);
  pthread_mutex_unlock(&oh_helping.lock);
}

/* --- in a domain -------------------------------------------------------------------------------------------------- */

/* Under the lock: the domain is about to have something to mark. */
static void oh_helping_take_part(caml_domain_state *d)
{
  CAMLassert(oh_helping.counted);
  if (d->marking_done) {
    atomic_fetch_add(&num_domains_to_mark, 1);
    d->marking_done = 0;
  }
}

static bool oh_helping_stays(mark_entry e)
{
  return (oh_page_bits((uintptr_t)e.start) & OH_PAGE_OWNER) == OH_SPACE_MARKED + 1;
}

/* Under the lock. The `most` oldest entries go to the inbox, but for those of OH_SPACE_MARKED. */
static void oh_helping_hand_over(caml_domain_state *d, uintnat most)
{
  struct mark_stack *s = d->mark_stack;
  uintnat kept = 0, n = s->count < most ? s->count : most;
  CAMLassert(!d->marking_done);
  if (n == 0 || !oh_helping_grow((void **)&oh_helping.inbox, &oh_helping.inbox_size, oh_helping.inbox_count, n,
                                sizeof(mark_entry)))
    return;
  uintnat before = oh_helping.inbox_count;
  for (uintnat i = 0; i < n; i++)
    if (oh_helping_stays(s->stack[i])) s->stack[kept++] = s->stack[i];
    else oh_helping.inbox[oh_helping.inbox_count++] = s->stack[i];
  memmove(s->stack + kept, s->stack + n, (s->count - n) * sizeof(mark_entry));
  s->count -= n - kept;
  if (oh_helping.inbox_count == before) return;
  if (!oh_helping.counted) {
    oh_store_relaxed(&oh_helping.counted, true);
    atomic_fetch_add(&num_domains_to_mark, 1);
  }
  pthread_cond_signal(&oh_helping.work);
}

/* Under the lock. The domain's stack is empty, and it takes some entries. */
static void oh_helping_assist(caml_domain_state *d, bool available)
{
  mark_entry *from = oh_helping.inbox;
  uintnat *count = &oh_helping.inbox_count;
  if (*count == 0 && !oh_helping.busy) {
    from = oh_helping.stack.stack;
    count = &oh_helping.stack.count;
  }
  if (*count == 0) {
    oh_store_relaxed(&oh_helping.wanted, true);
    return;
  }
  uintnat n = available ? (*count + 1) / 2 : *count;
  uintnat most = available ? OH_HELPING_GIVEN : 16 * OH_HELPING_GIVEN;
  if (n > most) n = most;
  oh_helping_take_part(d);
  oh_helper_count(&oh_helper_counters.given, n);
  for (; n != 0; n--) {
    mark_entry e = from[--*count];
    mark_stack_push_range(d->mark_stack, e.start, e.end);
  }
}

/* Under the lock, which is left meanwhile. */
static void oh_helping_take_deferred(caml_domain_state *d)
{
  value some[OH_HELPING_DEFERRED];
  uintnat n = 0;
  oh_helping_take_part(d);
  while (n < OH_HELPING_DEFERRED && oh_helping.deferred.count != 0)
    some[n++] = oh_helping.deferred.at[--oh_helping.deferred.count];
  pthread_mutex_unlock(&oh_helping.lock);
  while (n != 0) {
    value v = some[--n];
    if (oh_table_kind((uintptr_t)v) == OH_KIND_MAJOR) caml_darken(d, v, NULL);
    else (void)oh_pointer_is_markable_by((uintptr_t)v, OH_REGION_BY_BLOCK);
  }
  pthread_mutex_lock(&oh_helping.lock);
}

/* The helper may be asleep. */
static void oh_helping_wake(void)
{
  if (pthread_mutex_trylock(&oh_helping.lock) != 0) return;
  if (!oh_helping.busy && !oh_helping.sweeps && oh_helping_may_work()) pthread_cond_signal(&oh_helping.work);
  pthread_mutex_unlock(&oh_helping.lock);
}

static bool oh_helping_is_behind(caml_domain_state *d)
{
  return diffmod(atomic_load(&alloc_counter), atomic_load(&work_counter))
         > (intnat)(Wsize_bsize(caml_heap_size(d->shared_heap)) / OH_HELPING_BEHIND);
}

/* With memory=small: half of the space_overhead that the program asks for, in cycles of a helper that keeps pace. */
static uintnat oh_helping_percent(uintnat percent)
{
  bool frugal = oh_load_relaxed(&oh_helping.frugal) && oh_load_relaxed(&oh_helping.used);
  return frugal ? (percent + 1) / 2 : percent;
}

/* Under the lock. False: there was nothing to take, and the helper has not ended. */
static bool oh_helping_look(caml_domain_state *d, bool complete)
{
  bool available = oh_helping.used && oh_helping.runs && !oh_table_reporting();
  bool behind = oh_helping_is_behind(d), assists = complete || !available || behind, waits = false;
  if (!complete) {
    oh_helping.looks++;
    oh_helping.late += behind;
  }
  if (d->sweeping_done && oh_helping.credit != 0) {
    atomic_fetch_add(&work_counter, oh_helping.credit);
    oh_helping.credit = 0;
  }
  if (oh_helping.counted) {
    if (!oh_helping.busy) oh_helping_publish();
    if (oh_helping.deferred.count != 0) oh_helping_take_deferred(d);
  }
  if (oh_helping.counted) { /* still: the lock was left */
    if (assists && d->mark_stack->count == 0) oh_helping_assist(d, available);
    if (!oh_helping.busy && oh_helping.stack.count == 0 && oh_helping.inbox_count == 0 && oh_helping.deferred.count == 0
        && oh_helping.own.count == 0) {
      ephe_next_cycle();
      oh_store_relaxed(&oh_helping.counted, false);
      atomic_fetch_add(&num_domains_to_mark, -1);
    }
    else waits = d->marking_done;
  }
  if (available && !d->marking_done) {
    uintnat own = d->mark_stack->count;
    if (!assists) oh_helping_hand_over(d, own);
    else if (oh_helping.inbox_count == 0 && !oh_helping.busy && own > 1) oh_helping_hand_over(d, own / 2);
  }
  return !waits;
}

/* In a slice, before marking. In an opportunistic one, other domains may be changing the phase. While ephemerons are
   swept, all that can be reached has been. */
static void oh_helping_slice(caml_domain_state *d, int mode)
{
  if (__builtin_expect(!oh_helping_enabled, 1) || mode == Slice_opportunistic) return;
  if (caml_gc_phase != Phase_sweep_and_mark_main && caml_gc_phase != Phase_mark_final) return;
  if (!oh_load_relaxed(&oh_helping.counted) && (d->marking_done || !oh_load_relaxed(&oh_helping.used))) return;
  bool complete = mode == Slice_uninterruptible;
  uint64_t until = 0;
  for (;;) {
    if (pthread_mutex_trylock(&oh_helping.lock) == 0) {
      bool done = oh_helping_look(d, complete);
      pthread_mutex_unlock(&oh_helping.lock);
      if (done) return;
    }
    else if (!d->marking_done) return;
    if (!complete) return;
    uint64_t now = oh_helping_clock(CLOCK_MONOTONIC);
    if (until == 0) until = now + OH_HELPING_WAIT;
    if (now >= until) return;
    sched_yield();
  }
}

/* A cycle has begun: behind the last barrier, since others are still arranging their heaps before. If the helper's lock
   is not to be had, its thread is woken in a slice. */
static void oh_helping_cycle(caml_domain_state *d)
{
  if (!oh_helping_enabled || !oh_load_relaxed(&oh_helping.used)) return;
  oh_sweeping_hand_over(d->shared_heap);
  oh_helping_begin(d);
  oh_helping_wake();
}

/* In a slice: what the helper has swept since the last one; then what the domain has itself. It takes pools back where
   it would take marking back. */
static intnat oh_helping_sweep(intnat budget, int mode)
{
  caml_domain_state *d = Caml_state;
  struct caml_heap_state *heap = d->shared_heap;
  if (__builtin_expect(!oh_sweeping_is_handed(heap), 1)) return caml_sweep(heap, budget);
  bool complete = mode == Slice_uninterruptible;
  budget -= oh_sweeping_collect(heap, complete ? OH_SWEEPING_ALL : OH_HELPING_EMPTIED);
  if (budget > 0) budget = caml_sweep(heap, budget);
  if (budget > 0 && oh_sweeping_waits()) {
    bool available = oh_load_relaxed(&oh_helping.used) && oh_load_relaxed(&oh_helping.runs);
    if (available) oh_helping_wake();
    if (complete || mode == Slice_opportunistic || !available || oh_helping_is_behind(d))
      while (budget > 0 && oh_sweeping_take(heap, OH_HELPING_POOLS)) budget = caml_sweep(heap, budget);
  }
  return budget;
}

/* In a slice in which there was nothing to sweep. Otherwise the helper has pools that are to come back, and the slice
   goes on to mark. */
static bool oh_helping_has_swept(int mode)
{
  if (oh_sweeping_ends(Caml_state->shared_heap)) return true;
  if (mode == Slice_uninterruptible) sched_yield();
  return false;
}

/* Marking has begun: the roots are on the domain's stack. */
static void oh_helping_begin(caml_domain_state *d)
{
  if (!oh_helping_enabled || !oh_load_relaxed(&oh_helping.used) || d->marking_done) return;
  if (pthread_mutex_trylock(&oh_helping.lock) != 0) return;
  if (oh_helping.used && !oh_table_reporting()) oh_helping_hand_over(d, d->mark_stack->count);
  pthread_mutex_unlock(&oh_helping.lock);
}

/* Entries that a domain takes may lead to little: as long as there is something to take, the slice goes on. */
static intnat oh_helping_mark(intnat budget, int mode)
{
  caml_domain_state *d = Caml_state;
  if (mode == Slice_uninterruptible) oh_helping_slice(d, mode);
  for (;;) {
    budget = mark(budget);
    if (budget <= 0 || !d->marking_done || !oh_load_relaxed(&oh_helping.counted)) return budget;
    oh_helping_slice(d, mode);
    if (d->marking_done) return budget;
  }
}
#endif
#endif
