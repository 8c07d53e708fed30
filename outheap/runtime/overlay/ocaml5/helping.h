/* SPDX-License-Identifier: MIT */
/* Part of major_gc.c: the helper, a thread that marks beside the domains. docs/internals/helper.md has the reasons.

   The helper has a mark stack of its own, and takes entries from an inbox. When a cycle begins to mark, and in each
   slice, a domain puts the entries of its own stack there; so it has next to nothing to mark itself. Where a slice has
   to be completed, or marking is behind, it takes entries back (it assists).

     counted   =>   num_domains_to_mark counts one more than the domains with marking_done = 0
     the inbox, the helper's stack, or the list of what it deferred is not empty, or it is at work   =>   counted
     counted changes from 0 to 1 under the lock, by a domain that is counted itself; from 1 to 0 under the lock, by a
     domain in a slice, when all of these are empty and the helper is not at work
     a domain takes entries or deferred values under the lock, and is counted itself before it has them
     the colours change, the heap is compacted or verified   =>   counted = 0: the helper holds no pointer

   The helper calls nothing of the runtime, and no domain waits for it but in a slice that must be completed, for a
   bounded time; to start a fork; and to stop it.

   What it never touches: continuations (another thread may be scanning their stack), regions that are tracked or have
   cells, and entries in memory that a library has handed to the marker (OH_SPACE_MARKED). Of the last, Boxroot's pools rely on
   being read by their own domain only; they are found only through each other, from an entry on that domain's stack. So
   entries that lie there stay on the stack. */
#ifndef OH_HELPING_H
#define OH_HELPING_H

#include "helper.h"
#include "page.h"
#include "settings.h"
#include <sched.h>
#include <time.h>

#if !OH_HELPER
static void oh_helper_turn(void)
{
  static bool told;
  if (oh_settings.helper == OH_SETTINGS_HELPER_OFF || told) return;
  told = true;
  oh_log("OUTHEAP: helper is not available for this version of OCaml, this processor, or this flavour");
}
static void oh_helper_begin(caml_domain_state *d) { (void)d; }
static void oh_helper_slice(caml_domain_state *d, int mode) { (void)d, (void)mode; }
static intnat oh_helper_mark(intnat budget, int mode) { return (void)mode, mark(budget); }
#else

enum {
  OH_HELPER_BATCH = 1 << 14,                              /* words that it marks between two looks at its lock */
  OH_HELPER_ROOM = OH_HELPER_BATCH + 4 * OH_MARK_LOOP_QUEUE, /* entries, or deferred values, that a batch may add */
  OH_HELPER_GIVEN = 64,                                   /* entries that a domain takes at a time */
  OH_HELPER_DEFERRED = 64,                                /* deferred values that it takes at a time */
  OH_HELPER_BEHIND = 16,                                  /* a domain assists when behind by that part of the heap */
  OH_HELPER_WAIT = 200000,                                /* nanoseconds that it waits at most in a slice */
  OH_HELPER_WINDOW = 20000000,                            /* nanoseconds of which it should have had 5/8 */
  OH_HELPER_RESTS = 2,                                    /* cycles, when it had less */
  OH_HELPER_HEAP = 4 << 20,                               /* bytes from which on a heap deserves it (auto) */
  OH_HELPER_STACK = 1 << 20,                              /* bytes that its stack may always have */
  OH_HELPER_STACK_SHARE = 32                              /* and the part of the heap */
};

struct oh_helper_values { value *at; uintnat count, size; };

static struct {
  pthread_mutex_t lock;
  pthread_cond_t work, rested;
  pthread_t thread;
  /* Under the lock. */
  mark_entry *inbox;
  uintnat inbox_count, inbox_size;
  struct oh_helper_values deferred;
  bool runs;       /* there is a thread */
  bool quits;      /* it is to end */
  bool busy;       /* it marks */
  bool stopped;    /* for ever */
  unsigned forks;  /* it must not begin to mark */
  unsigned rests;  /* cycles of rest */
  uintnat credit;  /* words marked, of which no domain has told the pacer */
  uintnat limit;   /* of its stack, in entries */
  /* While it is busy, the thread's own; otherwise under the lock. */
  struct mark_stack stack;
  struct oh_helper_values own;
  /* Written under the lock, and read without. */
  bool counted;
  bool used;   /* in this cycle */
  bool wanted; /* a domain would take entries */
} oh_helper = { .lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER,
                .rested = PTHREAD_COND_INITIALIZER };

static bool oh_helper_enabled; /* set once, between two cycles */

/* --- the thread --------------------------------------------------------------------------------------------------- */

/* There is room: the thread has seen to that before the batch. */
static void oh_helper_defer(value v)
{
  CAMLassert(oh_helper.own.count < oh_helper.own.size);
  oh_helper.own.at[oh_helper.own.count++] = v;
}

/* Is this a pointer to a region? Then it is dealt with. While all domains are stopped, a library may give up tracked
   memory, and memory with cells; the helper is not stopped then, and must not touch either. */
static __attribute__((noinline)) bool oh_helper_meets_region(uintptr_t v)
{
  if (!oh_kind_is_region(oh_table_kind(v))) return false;
  if (v < oh_load_relaxed(&oh_track_limit) || (oh_load_relaxed(&oh_region_reach_bits[v >> OH_CHUNK_LOG]) & OH_REGION_CELLS))
    oh_helper_defer((value)v);
  else oh_region_set_reach_bit(v, OH_REGION_BY_BLOCK);
  return true;
}

static void oh_helper_push(struct mark_stack *stk, value_ptr start, value_ptr end)
{
  CAMLassert(stk->count < stk->size);
  stk->stack[stk->count++] = (mark_entry){ start, end };
}

/* Room for `more` elements. False: no memory. */
static bool oh_helper_grow(void **at, uintnat *size, uintnat count, uintnat more, size_t each)
{
  if (*size - count >= more) return true;
  uintnat wanted = (count + more) * 2;
  void *new = realloc(*at, wanted * each);
  if (new == NULL) return false;
  *at = new;
  *size = wanted;
  return true;
}

static uint64_t oh_helper_clock(clockid_t clock)
{
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool oh_helper_has_room(void)
{
  return oh_helper_grow((void **)&oh_helper.stack.stack, &oh_helper.stack.size, oh_helper.stack.count, OH_HELPER_ROOM,
                        sizeof(mark_entry))
         && oh_helper_grow((void **)&oh_helper.own.at, &oh_helper.own.size, oh_helper.own.count, OH_HELPER_ROOM,
                           sizeof(value));
}

/* Nothing more in this cycle. What it has, domains take. */
static void oh_helper_rest(size_t *why, unsigned cycles)
{
  oh_helper_count(why, 1);
  oh_store_relaxed(&oh_helper.used, false);
  if (oh_helper.rests < cycles) oh_helper.rests = cycles;
}

/* Gives the older half of its stack, but not more than domains take in some turns: these entries lead to most. */
static void oh_helper_spill(void)
{
  struct mark_stack *s = &oh_helper.stack;
  uintnat n = s->count / 2;
  if (n > 16 * OH_HELPER_GIVEN) n = 16 * OH_HELPER_GIVEN;
  if (n == 0 || oh_helper.inbox_count != 0) return;
  if (!oh_helper_grow((void **)&oh_helper.inbox, &oh_helper.inbox_size, 0, n, sizeof(mark_entry))) return;
  memcpy(oh_helper.inbox, s->stack, n * sizeof(mark_entry));
  memmove(s->stack, s->stack + n, (s->count - n) * sizeof(mark_entry));
  s->count -= n;
  oh_helper.inbox_count = n;
}

/* After a batch, under the lock: what it deferred, domains find. False: no memory, and it stays with the thread, where
   they look, too. */
static void oh_helper_publish(void)
{
  struct oh_helper_values *own = &oh_helper.own, *all = &oh_helper.deferred;
  if (own->count == 0) return;
  if (all->count == 0) {
    struct oh_helper_values v = *all;
    *all = *own;
    *own = v;
    own->count = 0;
    return;
  }
  if (!oh_helper_grow((void **)&all->at, &all->size, all->count, own->count, sizeof(value))) return;
  memcpy(all->at + all->count, own->at, own->count * sizeof(value));
  all->count += own->count;
  own->count = 0;
}

static void oh_helper_batch(void)
{
  intnat left = OH_HELPER_BATCH;
  oh_helper.busy = true;
  pthread_mutex_unlock(&oh_helper.lock);
  bool room = oh_helper_has_room();
  if (room) left = oh_mark_loop_helping(&oh_helper.stack, OH_HELPER_BATCH);
  pthread_mutex_lock(&oh_helper.lock);
  oh_helper.busy = false;
  uintnat done = (uintnat)(OH_HELPER_BATCH - left);
  oh_helper.credit += done;
  oh_helper_count(&oh_helper_counters.words, done);
  oh_helper_count(&oh_helper_counters.deferred, oh_helper.own.count);
  oh_helper_publish();
  if (!room || oh_helper.stack.count > oh_helper.limit) oh_helper_rest(&oh_helper_counters.overflowed, 0);
  if (oh_helper.forks != 0) pthread_cond_broadcast(&oh_helper.rested);
}

static bool oh_helper_may_mark(void)
{
  return oh_helper.used && oh_helper.forks == 0 && !oh_table_reporting()
         && (oh_helper.stack.count != 0 || oh_helper.inbox_count != 0);
}

static void *oh_helper_run(void *unused)
{
  uint64_t wall = 0, cpu = 0; /* when the window began; 0: it is not at work */
  pthread_mutex_lock(&oh_helper.lock);
  for (;;) {
    if (!oh_helper.quits && oh_helper_may_mark()) {
      if (wall == 0) {
        wall = oh_helper_clock(CLOCK_MONOTONIC);
        cpu = oh_helper_clock(CLOCK_THREAD_CPUTIME_ID);
      }
      if (oh_helper.stack.count == 0) {
        mark_entry *entries = oh_helper.stack.stack;
        uintnat size = oh_helper.stack.size;
        oh_helper.stack.stack = oh_helper.inbox;
        oh_helper.stack.size = oh_helper.inbox_size;
        oh_helper.stack.count = oh_helper.inbox_count;
        oh_helper.inbox = entries;
        oh_helper.inbox_size = size;
        oh_helper.inbox_count = 0;
      }
      if (oh_load_relaxed(&oh_helper.wanted)) {
        oh_store_relaxed(&oh_helper.wanted, false);
        oh_helper_spill();
      }
      oh_helper_batch();
      uint64_t now = oh_helper_clock(CLOCK_MONOTONIC);
      if (now - wall >= OH_HELPER_WINDOW) {
        uint64_t used = oh_helper_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
        oh_helper_count(&oh_helper_counters.microseconds, used / 1000);
        if (oh_settings.helper == OH_SETTINGS_HELPER_AUTO && used < (now - wall) / 8 * 5)
          oh_helper_rest(&oh_helper_counters.backed_off, OH_HELPER_RESTS);
        wall = 0;
      }
      continue;
    }
    if (wall != 0) {
      uint64_t used = oh_helper_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
      oh_helper_count(&oh_helper_counters.microseconds, used / 1000);
      wall = 0;
    }
    if (oh_helper.quits) break;
    pthread_cond_wait(&oh_helper.work, &oh_helper.lock);
  }
  pthread_mutex_unlock(&oh_helper.lock);
  return unused;
}

/* --- its life ----------------------------------------------------------------------------------------------------- */

/* The lock is held across a fork, and the helper does not mark. The child has what it had, and no thread: its domain
   takes the entries, or gets a helper of its own with the next cycle. */
static void oh_helper_before_fork(void)
{
  pthread_mutex_lock(&oh_helper.lock);
  oh_helper.forks++;
  if (oh_helper.busy) oh_helper_count(&oh_helper_counters.paused, 1);
  while (oh_helper.busy) pthread_cond_wait(&oh_helper.rested, &oh_helper.lock);
}

static void oh_helper_after_fork(void)
{
  oh_helper.forks--;
  pthread_cond_signal(&oh_helper.work);
  pthread_mutex_unlock(&oh_helper.lock);
}

static void oh_helper_in_child(void)
{
  pthread_cond_init(&oh_helper.work, NULL);
  pthread_cond_init(&oh_helper.rested, NULL);
  oh_helper.forks = 0;
  oh_helper.runs = oh_helper.quits = false;
  pthread_mutex_unlock(&oh_helper.lock);
}

static void oh_helper_end(void)
{
  pthread_mutex_lock(&oh_helper.lock);
  oh_helper.stopped = true;
  oh_store_relaxed(&oh_helper.used, false);
  bool join = oh_helper.runs;
  pthread_t thread = oh_helper.thread;
  oh_helper.runs = false; /* of two threads that stop it one joins */
  oh_helper.quits = true;
  pthread_cond_signal(&oh_helper.work);
  pthread_mutex_unlock(&oh_helper.lock);
  if (join) pthread_join(thread, NULL);
}

/* Before code of this library goes away: at exit, and with the shared object that it is part of. */
static __attribute__((destructor)) void oh_helper_unload(void)
{
  if (oh_helper_enabled) oh_helper_end();
}

static void oh_helper_start(void)
{
  static bool tried;
  if (oh_settings.helper == OH_SETTINGS_HELPER_OFF || tried) return;
  tried = true;
  if (pthread_atfork(oh_helper_before_fork, oh_helper_after_fork, oh_helper_in_child) != 0) {
    oh_log("no memory to prepare for fork: no helper");
    return;
  }
  oh_helper_stop = oh_helper_end;
  oh_helper_enabled = true;
}

/* Between two cycles, by one thread while all domains are stopped: is the next one to have a helper? */
static void oh_helper_turn(void)
{
  oh_helper_start();
  if (!oh_helper_enabled) return;
  pthread_mutex_lock(&oh_helper.lock); /* the helper does not mark, and so holds it for a moment at most */
  OH_CHECK(!oh_helper.counted && !oh_helper.busy && oh_helper.stack.count == 0 && oh_helper.inbox_count == 0
           && oh_helper.deferred.count == 0 && oh_helper.own.count == 0);
  uintnat bytes = caml_heap_size(Caml_state->shared_heap);
  bool use = !oh_helper.stopped && bytes != 0;
  if (use && oh_settings.helper == OH_SETTINGS_HELPER_AUTO) {
    if (oh_helper.rests != 0) {
      oh_helper.rests--;
      use = false;
    }
    else use = bytes >= OH_HELPER_HEAP && oh_helper_processors() > (uintnat)atomic_load(&caml_num_domains_running);
  }
  if (use && !oh_helper.runs) {
    oh_helper.runs = oh_helper_thread(&oh_helper.thread, oh_helper_run);
    if (!oh_helper.runs) {
      oh_log("no thread for the helper");
      oh_helper.stopped = true;
      use = false;
    }
  }
  oh_helper.limit = (bytes / OH_HELPER_STACK_SHARE > OH_HELPER_STACK ? bytes / OH_HELPER_STACK_SHARE : OH_HELPER_STACK)
                    / sizeof(mark_entry);
  oh_helper.credit = 0;
  oh_store_relaxed(&oh_helper.wanted, false);
  oh_store_relaxed(&oh_helper.used, use);
  if (use) oh_helper_count(&oh_helper_counters.cycles, 1);
  pthread_mutex_unlock(&oh_helper.lock);
}

/* --- in a domain -------------------------------------------------------------------------------------------------- */

/* Under the lock: the domain is about to have something to mark. */
static void oh_helper_take_part(caml_domain_state *d)
{
  CAMLassert(oh_helper.counted);
  if (d->marking_done) {
    atomic_fetch_add(&num_domains_to_mark, 1);
    d->marking_done = 0;
  }
}

static bool oh_helper_stays(mark_entry e)
{
  return (oh_page_bits((uintptr_t)e.start) & OH_PAGE_OWNER) == OH_SPACE_MARKED + 1;
}

/* Under the lock. The `most` oldest entries go to the inbox, but for those of OH_SPACE_MARKED. */
static void oh_helper_hand_over(caml_domain_state *d, uintnat most)
{
  struct mark_stack *s = d->mark_stack;
  uintnat kept = 0, n = s->count < most ? s->count : most;
  CAMLassert(!d->marking_done);
  if (n == 0 || !oh_helper_grow((void **)&oh_helper.inbox, &oh_helper.inbox_size, oh_helper.inbox_count, n,
                                sizeof(mark_entry)))
    return;
  uintnat before = oh_helper.inbox_count;
  for (uintnat i = 0; i < n; i++)
    if (oh_helper_stays(s->stack[i])) s->stack[kept++] = s->stack[i];
    else oh_helper.inbox[oh_helper.inbox_count++] = s->stack[i];
  memmove(s->stack + kept, s->stack + n, (s->count - n) * sizeof(mark_entry));
  s->count -= n - kept;
  if (oh_helper.inbox_count == before) return;
  if (!oh_helper.counted) {
    oh_store_relaxed(&oh_helper.counted, true);
    atomic_fetch_add(&num_domains_to_mark, 1);
  }
  pthread_cond_signal(&oh_helper.work);
}

/* Under the lock. The domain's stack is empty, and it takes some entries. */
static void oh_helper_assist(caml_domain_state *d, bool available)
{
  mark_entry *from = oh_helper.inbox;
  uintnat *count = &oh_helper.inbox_count;
  if (*count == 0 && !oh_helper.busy) {
    from = oh_helper.stack.stack;
    count = &oh_helper.stack.count;
  }
  if (*count == 0) {
    oh_store_relaxed(&oh_helper.wanted, true);
    return;
  }
  uintnat n = available ? (*count + 1) / 2 : *count;
  if (n > OH_HELPER_GIVEN) n = OH_HELPER_GIVEN;
  oh_helper_take_part(d);
  oh_helper_count(&oh_helper_counters.given, n);
  for (; n != 0; n--) {
    mark_entry e = from[--*count];
    mark_stack_push_range(d->mark_stack, e.start, e.end);
  }
}

/* Under the lock, which is left meanwhile. */
static void oh_helper_take_deferred(caml_domain_state *d)
{
  value some[OH_HELPER_DEFERRED];
  uintnat n = 0;
  oh_helper_take_part(d);
  while (n < OH_HELPER_DEFERRED && oh_helper.deferred.count != 0)
    some[n++] = oh_helper.deferred.at[--oh_helper.deferred.count];
  pthread_mutex_unlock(&oh_helper.lock);
  while (n != 0) {
    value v = some[--n];
    if (oh_table_kind((uintptr_t)v) == OH_KIND_MAJOR) caml_darken(d, v, NULL);
    else (void)oh_pointer_is_markable_by((uintptr_t)v, OH_REGION_BY_BLOCK);
  }
  pthread_mutex_lock(&oh_helper.lock);
}

static bool oh_helper_is_behind(caml_domain_state *d)
{
  return diffmod(atomic_load(&alloc_counter), atomic_load(&work_counter))
         > (intnat)(Wsize_bsize(caml_heap_size(d->shared_heap)) / OH_HELPER_BEHIND);
}

/* Under the lock. False: there was nothing to take, and the helper has not ended. */
static bool oh_helper_look(caml_domain_state *d, bool complete)
{
  bool available = oh_helper.used && oh_helper.runs && !oh_table_reporting();
  bool assists = complete || !available || oh_helper_is_behind(d), waits = false;
  if (d->sweeping_done && oh_helper.credit != 0) {
    atomic_fetch_add(&work_counter, oh_helper.credit);
    oh_helper.credit = 0;
  }
  if (oh_helper.counted) {
    if (!oh_helper.busy) oh_helper_publish();
    if (oh_helper.deferred.count != 0) oh_helper_take_deferred(d);
    if (assists && d->mark_stack->count == 0) oh_helper_assist(d, available);
    if (!oh_helper.busy && oh_helper.stack.count == 0 && oh_helper.inbox_count == 0 && oh_helper.deferred.count == 0
        && oh_helper.own.count == 0) {
      ephe_next_cycle();
      oh_store_relaxed(&oh_helper.counted, false);
      atomic_fetch_add(&num_domains_to_mark, -1);
    }
    else waits = d->marking_done;
  }
  if (available && !d->marking_done) {
    uintnat own = d->mark_stack->count;
    if (!assists) oh_helper_hand_over(d, own);
    else if (oh_helper.inbox_count == 0 && !oh_helper.busy && own > 1) oh_helper_hand_over(d, own / 2);
  }
  return !waits;
}

/* In a slice, before marking. In an opportunistic one, other domains may be changing the phase. While ephemerons are
   swept, all that can be reached has been. */
static void oh_helper_slice(caml_domain_state *d, int mode)
{
  if (__builtin_expect(!oh_helper_enabled, 1) || mode == Slice_opportunistic) return;
  if (caml_gc_phase != Phase_sweep_and_mark_main && caml_gc_phase != Phase_mark_final) return;
  if (!oh_load_relaxed(&oh_helper.counted) && (d->marking_done || !oh_load_relaxed(&oh_helper.used))) return;
  bool complete = mode == Slice_uninterruptible;
  uint64_t until = 0;
  for (;;) {
    if (pthread_mutex_trylock(&oh_helper.lock) == 0) {
      bool done = oh_helper_look(d, complete);
      pthread_mutex_unlock(&oh_helper.lock);
      if (done) return;
    }
    else if (!d->marking_done) return;
    if (!complete) return;
    uint64_t now = oh_helper_clock(CLOCK_MONOTONIC);
    if (until == 0) until = now + OH_HELPER_WAIT;
    if (now >= until) return;
    sched_yield();
  }
}

/* Marking has begun: the roots are on the domain's stack. */
static void oh_helper_begin(caml_domain_state *d)
{
  if (!oh_helper_enabled || !oh_load_relaxed(&oh_helper.used) || d->marking_done) return;
  if (pthread_mutex_trylock(&oh_helper.lock) != 0) return;
  if (oh_helper.used && !oh_table_reporting()) oh_helper_hand_over(d, d->mark_stack->count);
  pthread_mutex_unlock(&oh_helper.lock);
}

static intnat oh_helper_mark(intnat budget, int mode)
{
  if (mode == Slice_uninterruptible) oh_helper_slice(Caml_state, mode);
  return mark(budget);
}
#endif
#endif
