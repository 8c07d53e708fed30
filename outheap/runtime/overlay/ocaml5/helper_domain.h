/* SPDX-License-Identifier: MIT */
/* Part of major_gc.c: what domains do with the helper (helper_thread.h), a thread that sweeps and marks beside them.
   docs/internals/helper.md has the reasons.

   When a cycle begins to mark, and in each slice, a domain puts the entries of its own stack into the helper's inbox;
   so it has next to nothing to mark itself. Where a slice has to be completed, or marking is behind, it takes entries
   back (it assists).

     counted changes from 0 to 1 under the lock, by a domain that is counted itself; from 1 to 0 under the lock, by a
     domain in a slice, when inbox, stack and the list of what was deferred are empty and the helper is not at work
     a domain takes entries or deferred values under the lock, and is counted itself before it has them

   No domain waits for the helper but in a slice that must be completed, for a bounded time; to start a fork; and to
   stop it.

   With memory=small, cycles in which it takes part come sooner, as long as it keeps pace.

   Boxroot's pools, of those in memory that a library has handed to the marker, rely on being read by their own domain
   only; they are found only through each other, from an entry on that domain's stack. So entries that lie there stay on
   the stack. */
#ifndef OH_HELPER_DOMAIN_H
#define OH_HELPER_DOMAIN_H

#include "helper.h"
#include "sweeping.h"

#if !OH_HELPER
static void oh_helper_domain_between_cycles(void) { oh_helper_refuse(); }
static void oh_helper_domain_cycle_begins(caml_domain_state *d) { (void)d; }
static void oh_helper_domain_marking_begins(caml_domain_state *d) { (void)d; }
static bool oh_helper_domain_has_swept(int mode) { return (void)mode, true; }
static intnat oh_helper_domain_sweep(intnat budget, int mode)
{
  return (void)mode, caml_sweep(Caml_state->shared_heap, budget);
}
static uintnat oh_helper_domain_percent(uintnat percent) { return percent; }
static void oh_helper_domain_slice(caml_domain_state *d, int mode) { (void)d, (void)mode; }
static intnat oh_helper_domain_mark(intnat budget, int mode) { return (void)mode, mark(budget); }
#else
#include "helper_thread.h"
#include "page.h"
#include <sched.h>

/* --- between two cycles ------------------------------------------------------------------------------------------- */

/* Without its lock, which somebody has who has lost the processor, the next cycle has no helper. */
static bool oh_helper_domain_try(void)
{
  enum oh_helper_part in = OH_HELPER_IN;
  for (unsigned i = 0; i < OH_HELPER_TRIES; i++) {
    if (pthread_mutex_trylock(&oh_helper.lock) == 0) return true;
    cpu_relax();
  }
  (void)oh_cas_seq_cst(&oh_helper.part, &in, OH_HELPER_OUT);
  oh_store_relaxed(&oh_helper.frugal, false);
  return false;
}

/* Between two cycles, by one thread while all domains are stopped: is the next one to have a helper? */
static void oh_helper_domain_between_cycles(void)
{
  oh_helper_thread_start();
  if (!oh_helper_thread_enabled || !oh_helper_domain_try()) return;
  OH_CHECK(!oh_helper.counted && !oh_helper_thread_marks() && oh_helper.stack.count == 0 && oh_helper.inbox_count == 0
           && oh_helper.deferred.count == 0 && oh_helper.own.count == 0 && oh_sweeping_is_idle());
  uintnat bytes = caml_heap_size(Caml_state->shared_heap);
  bool pauses = false, use = oh_helper.state <= OH_HELPER_MARKS && bytes != 0;
  if (use && oh_settings.helper == OH_SETTINGS_HELPER_AUTO)
    use = bytes >= OH_HELPER_HEAP && oh_helper_processors() > (uintnat)atomic_load(&caml_num_domains_running);
  if (oh_helper.part == OH_HELPER_PAUSES && oh_clock_now() < oh_helper.resumes) pauses = use, use = false;
  if (use && oh_helper.state == OH_HELPER_ABSENT) {
    use = oh_service_start(&oh_helper_thread_service);
    if (!use) oh_log("no thread for the helper");
    oh_helper_thread_become(use ? OH_HELPER_RESTS : OH_HELPER_ENDED);
  }
  uintnat stack = bytes / mark_stack_share(OH_MARK_STACK_SHARE_OF_STOCK);
  if (stack < OH_HELPER_STACK) stack = OH_HELPER_STACK;
  if (oh_settings.helper_stack != 0) stack = oh_settings.helper_stack;
  oh_helper.limit = stack / sizeof(mark_entry);
  oh_helper.credit = 0;
  oh_store_relaxed(&oh_helper.wanted, false);
  oh_store_relaxed(&oh_helper.part, use ? OH_HELPER_IN : pauses ? OH_HELPER_PAUSES : OH_HELPER_OUT);
  if (!oh_helper_thread_exists()) (void)oh_helper_thread_shrink(); /* it has been stopped, and left this */
  /* Where the helper does not keep pace, more work would be the domains'. */
  bool late = oh_helper.late * OH_HELPER_LATE > oh_helper.looks, judged = oh_helper.looks >= OH_HELPER_LOOKS;
  if (judged && late) oh_helper.lavish = OH_HELPER_LAVISH;
  else if (oh_helper.lavish != 0) oh_helper.lavish--;
  if (judged) oh_helper.late = oh_helper.looks = 0;
  bool frugal = use && oh_settings.frugal && oh_helper.lavish == 0;
  oh_store_relaxed(&oh_helper.frugal, frugal);
  if (frugal) oh_helper_count(&oh_helper_counters.frugal, 1);
  if (use) oh_helper_count(&oh_helper_counters.cycles, 1);
  pthread_mutex_unlock(&oh_helper.lock);
}

/* --- in a domain -------------------------------------------------------------------------------------------------- */

/* Under the lock: the domain is about to have something to mark. */
static void oh_helper_domain_take_part(caml_domain_state *d)
{
  CAMLassert(oh_helper.counted);
  if (d->marking_done) {
    atomic_fetch_add(&num_domains_to_mark, 1);
    d->marking_done = 0;
  }
}

static bool oh_helper_domain_stays(mark_entry e)
{
  return (oh_page_bits((uintptr_t)e.start) & OH_PAGE_OWNER) == OH_SPACE_MARKED + 1;
}

/* Under the lock. The `most` oldest entries go to the inbox, but for those of OH_SPACE_MARKED. */
static void oh_helper_domain_hand_over(caml_domain_state *d, uintnat most)
{
  struct mark_stack *s = d->mark_stack;
  uintnat kept = 0, n = s->count < most ? s->count : most;
  CAMLassert(!d->marking_done);
  if (n == 0 || !oh_helper_thread_grow((void **)&oh_helper.inbox, &oh_helper.inbox_size, oh_helper.inbox_count, n,
                                sizeof(mark_entry)))
    return;
  uintnat before = oh_helper.inbox_count;
  for (uintnat i = 0; i < n; i++)
    if (oh_helper_domain_stays(s->stack[i])) s->stack[kept++] = s->stack[i];
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
static void oh_helper_domain_assist(caml_domain_state *d, bool available)
{
  mark_entry *from = oh_helper.inbox;
  uintnat *count = &oh_helper.inbox_count;
  if (*count == 0 && !oh_helper_thread_marks()) {
    from = oh_helper.stack.stack;
    count = &oh_helper.stack.count;
  }
  if (*count == 0) {
    oh_store_relaxed(&oh_helper.wanted, true);
    return;
  }
  uintnat n = available ? (*count + 1) / 2 : *count;
  uintnat most = available ? OH_HELPER_GIVEN : 16 * OH_HELPER_GIVEN;
  if (n > most) n = most;
  oh_helper_domain_take_part(d);
  oh_helper_count(&oh_helper_counters.given, n);
  for (; n != 0; n--) {
    mark_entry e = from[--*count];
    mark_stack_push_range(d->mark_stack, e.start, e.end);
  }
}

/* Under the lock, which is left meanwhile. */
static void oh_helper_domain_take_deferred(caml_domain_state *d)
{
  value some[OH_HELPER_DEFERRED];
  uintnat n = 0;
  oh_helper_domain_take_part(d);
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

/* The helper may be asleep. */
static void oh_helper_domain_wake(void)
{
  if (pthread_mutex_trylock(&oh_helper.lock) != 0) return;
  if (!oh_helper_thread_works() && oh_helper_thread_next() != OH_HELPER_RESTS)
    pthread_cond_signal(&oh_helper.work);
  pthread_mutex_unlock(&oh_helper.lock);
}

/* Does the helper take part in this cycle? */
static bool oh_helper_domain_is_helped(void) { return oh_load_relaxed(&oh_helper.part) == OH_HELPER_IN; }

static bool oh_helper_domain_is_behind(caml_domain_state *d)
{
  return diffmod(atomic_load(&alloc_counter), atomic_load(&work_counter))
         > (intnat)(Wsize_bsize(caml_heap_size(d->shared_heap)) / OH_HELPER_BEHIND);
}

/* With memory=small: half of the space_overhead that the program asks for, in cycles of a helper that keeps pace. */
static uintnat oh_helper_domain_percent(uintnat percent)
{
  bool frugal = oh_load_relaxed(&oh_helper.frugal) && oh_helper_domain_is_helped();
  return frugal ? (percent + 1) / 2 : percent;
}

/* Under the lock: is a pause over? Then it takes part in the rest of the cycle. */
static void oh_helper_domain_resume(void)
{
  if (oh_helper.part != OH_HELPER_PAUSES || oh_clock_now() < oh_helper.resumes) return;
  bool goes_on = oh_helper_thread_exists()
                 && oh_helper_processors() > (uintnat)atomic_load(&caml_num_domains_running);
  oh_store_relaxed(&oh_helper.part, goes_on ? OH_HELPER_IN : OH_HELPER_OUT);
}

/* Under the lock. False: there was nothing to take, and the helper has not ended. */
static bool oh_helper_domain_look(caml_domain_state *d, bool complete)
{
  oh_helper_domain_resume();
  bool available = oh_helper.part == OH_HELPER_IN && oh_helper_thread_exists() && !oh_table_reporting();
  bool behind = oh_helper_domain_is_behind(d), assists = complete || !available || behind, waits = false;
  if (!complete) {
    oh_helper.looks++;
    oh_helper.late += behind;
  }
  if (d->sweeping_done && oh_helper.credit != 0) {
    atomic_fetch_add(&work_counter, oh_helper.credit);
    oh_helper.credit = 0;
  }
  if (oh_helper.counted) {
    if (!oh_helper_thread_marks()) oh_helper_thread_publish();
    if (oh_helper.deferred.count != 0) oh_helper_domain_take_deferred(d);
  }
  if (oh_helper.counted) { /* still: the lock was left */
    if (assists && d->mark_stack->count == 0) oh_helper_domain_assist(d, available);
    if (!oh_helper_thread_marks() && oh_helper.stack.count == 0 && oh_helper.inbox_count == 0
        && oh_helper.deferred.count == 0 && oh_helper.own.count == 0) {
      ephe_next_cycle();
      oh_store_relaxed(&oh_helper.counted, false);
      atomic_fetch_add(&num_domains_to_mark, -1);
    }
    else waits = d->marking_done;
  }
  if (available && !d->marking_done) {
    uintnat own = d->mark_stack->count;
    if (!assists) oh_helper_domain_hand_over(d, own);
    else if (oh_helper.inbox_count == 0 && !oh_helper_thread_marks() && own > 1) oh_helper_domain_hand_over(d, own / 2);
  }
  return !waits;
}

/* In a slice, before marking. In an opportunistic one, other domains may be changing the phase. While ephemerons are
   swept, all that can be reached has been. */
static void oh_helper_domain_slice(caml_domain_state *d, int mode)
{
  if (__builtin_expect(!oh_helper_thread_enabled, 1) || mode == Slice_opportunistic) return;
  if (caml_gc_phase != Phase_sweep_and_mark_main && caml_gc_phase != Phase_mark_final) return;
  bool out = oh_load_relaxed(&oh_helper.part) == OH_HELPER_OUT;
  if (!oh_load_relaxed(&oh_helper.counted) && (d->marking_done || out)) return;
  bool complete = mode == Slice_uninterruptible;
  uint64_t until = 0;
  for (;;) {
    if (pthread_mutex_trylock(&oh_helper.lock) == 0) {
      bool done = oh_helper_domain_look(d, complete);
      pthread_mutex_unlock(&oh_helper.lock);
      if (done) return;
    }
    else if (!d->marking_done) return;
    if (!complete) return;
    uint64_t now = oh_clock_of_machine();
    if (until == 0) until = now + OH_HELPER_WAIT;
    if (now >= until) return;
    sched_yield();
  }
}

/* A cycle has begun: behind the last barrier, since others are still arranging their heaps before. If the helper's lock
   is not to be had, its thread is woken in a slice. */
static void oh_helper_domain_cycle_begins(caml_domain_state *d)
{
  if (!oh_helper_thread_enabled || !oh_helper_domain_is_helped()) return;
  oh_sweeping_hand_over(d->shared_heap);
  oh_helper_domain_marking_begins(d);
  oh_helper_domain_wake();
}

/* In a slice: what the helper has swept since the last one; then what the domain has itself. It takes pools back where
   it would take marking back. */
static intnat oh_helper_domain_sweep(intnat budget, int mode)
{
  caml_domain_state *d = Caml_state;
  struct caml_heap_state *heap = d->shared_heap;
  if (__builtin_expect(!oh_sweeping_is_handed(heap), 1)) return caml_sweep(heap, budget);
  bool complete = mode == Slice_uninterruptible;
  budget -= oh_sweeping_collect(heap, complete ? OH_SWEEPING_ALL : OH_HELPER_EMPTIED);
  if (budget > 0) budget = caml_sweep(heap, budget);
  if (budget > 0 && oh_sweeping_waits()) {
    bool available = oh_helper_domain_is_helped() && oh_helper_thread_exists();
    if (available) oh_helper_domain_wake();
    if (complete || mode == Slice_opportunistic || !available || oh_helper_domain_is_behind(d))
      while (budget > 0 && oh_sweeping_take(heap, OH_HELPER_POOLS)) budget = caml_sweep(heap, budget);
  }
  return budget;
}

/* In a slice in which there was nothing to sweep. Otherwise the helper has pools that are to come back, and the slice
   goes on to mark. */
static bool oh_helper_domain_has_swept(int mode)
{
  if (oh_sweeping_ends(Caml_state->shared_heap)) return true;
  if (mode == Slice_uninterruptible) sched_yield();
  return false;
}

/* Marking has begun: the roots are on the domain's stack. */
static void oh_helper_domain_marking_begins(caml_domain_state *d)
{
  if (!oh_helper_thread_enabled || !oh_helper_domain_is_helped() || d->marking_done) return;
  if (pthread_mutex_trylock(&oh_helper.lock) != 0) return;
  if (oh_helper.part == OH_HELPER_IN && !oh_table_reporting()) oh_helper_domain_hand_over(d, d->mark_stack->count);
  pthread_mutex_unlock(&oh_helper.lock);
}

/* Entries that a domain takes may lead to little: as long as there is something to take, the slice goes on. */
static intnat oh_helper_domain_mark(intnat budget, int mode)
{
  caml_domain_state *d = Caml_state;
  if (mode == Slice_uninterruptible) oh_helper_domain_slice(d, mode);
  for (;;) {
    budget = mark(budget);
    if (budget <= 0 || !d->marking_done || !oh_load_relaxed(&oh_helper.counted)) return budget;
    oh_helper_domain_slice(d, mode);
    if (d->marking_done) return budget;
  }
}
#endif
#endif
