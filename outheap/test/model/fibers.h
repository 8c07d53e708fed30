/* SPDX-License-Identifier: MIT */
/* Threads as fibers of one thread, and a scheduler. Each lock, condition and atomic access of code that is included
   behind this file is a point at which another fiber may go on. The scheduler chooses it at random, at a half to a 64th
   of the points; or by priorities that change at a few points, which finds what needs few preemptions at the right
   places (Burckhardt et al., A randomized scheduler with probabilistic guarantees of finding bugs). All choices follow
   from the seed, so a debugger can follow a failure. Memory is sequentially consistent. */
#ifndef FIBERS_H
#define FIBERS_H

#include "base.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <ucontext.h>

static uint64_t random_state;
static unsigned below(unsigned n)
{
  random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
  return (unsigned)(random_state >> 32) % n;
}

/* --- fibers ------------------------------------------------------------------------------------------------------- */

enum { FIBERS = 4, THREAD = FIBERS - 1 }; /* the last one is for a thread that the code starts */
enum { FIBER_STACK = 1 << 16, LOCKS = 8 };

static void *fiber_local; /* of the fiber that runs; NULL in the thread */

static struct fiber {
  ucontext_t context;
  bool exists;
  bool (*ready)(void const *), patient; /* what it waits for; it lets others go on while it tries a lock */
  void const *argument;
  int priority;
  void *local;
  char stack[FIBER_STACK] __attribute__((aligned(64)));
} fibers[FIBERS], program = { .patient = true };
static struct fiber *running = &program;

static unsigned rarely;     /* at random: one point in so many; 0: by priorities */
static unsigned changes;    /* points at which a priority changes, of 1024 */
static int least;           /* priority so far */
static size_t switches, points;

static void new_schedule(void)
{
  rarely = below(2) ? 0 : 2u << below(6);
  changes = 1u << below(6);
  for (int i = 0; i < FIBERS; i++) fibers[i].priority = (int)below(1000);
  least = 0;
}

static bool can_go_on(struct fiber const *f) { return f->exists && (f->ready == NULL || f->ready(f->argument)); }

static void resume(struct fiber *f)
{
  struct fiber *before = running;
  if (f == before) return;
  switches++;
  before->local = fiber_local;
  running = f;
  fiber_local = f->local;
  swapcontext(&before->context, &f->context);
}

/* The one that goes on, which is another one if `other`, as far as there is one. */
static struct fiber *choose(bool other)
{
  struct fiber *best = NULL;
  unsigned n = 0;
  for (struct fiber *f = fibers; f < fibers + FIBERS; f++) {
    if (!can_go_on(f) || (other && f == running)) continue;
    n++;
    if (best == NULL || (rarely != 0 ? below(n) == 0 : f->priority > best->priority)) best = f;
  }
  if (best == NULL && other && can_go_on(running)) best = running;
  OH_CHECK(best != NULL); /* otherwise all wait for each other */
  return best;
}

static void point(void)
{
  if (running == &program) return;
  points++;
  if (rarely != 0) {
    if (below(rarely) == 0) resume(choose(false));
    return;
  }
  if (below(1024) < changes) running->priority = --least;
  resume(choose(false));
}

static void yield(void)
{
  running->priority = --least;
  resume(choose(true));
}

static void wait_until(bool (*ready)(void const *), void const *argument)
{
  if (ready(argument)) return;
  running->ready = ready;
  running->argument = argument;
  resume(choose(true));
  running->ready = NULL;
}

static void begin_fiber(int i, void (*function)(void), void *local)
{
  struct fiber *f = &fibers[i];
  getcontext(&f->context);
  f->context.uc_stack.ss_sp = f->stack;
  f->context.uc_stack.ss_size = sizeof f->stack;
  makecontext(&f->context, function, 0);
  f->ready = NULL;
  f->local = local;
  f->patient = true;
  f->exists = true;
}

/* --- locks, conditions, threads ----------------------------------------------------------------------------------- */

static struct { void const *lock; struct fiber *holder; } locks[LOCKS];

static struct fiber **holder_of(void const *lock)
{
  int i = 0;
  while (i < LOCKS && locks[i].lock != lock && locks[i].lock != NULL) i++;
  OH_CHECK(i < LOCKS);
  locks[i].lock = lock;
  return &locks[i].holder;
}

static bool is_free(void const *lock) { return *holder_of(lock) == NULL; }
static int take(void const *lock) { return point(), wait_until(is_free, lock), *holder_of(lock) = running, 0; }
static int leave(void const *lock)
{
  OH_CHECK(*holder_of(lock) == running);
  *holder_of(lock) = NULL;
  return point(), 0;
}
static int try_to_take(void const *lock)
{
  if (running->patient) point();
  if (!is_free(lock)) return EBUSY;
  *holder_of(lock) = running;
  return 0;
}
static int make_free(void const *lock) { return *holder_of(lock) = NULL, 0; }

static bool never(void const *condition) { return (void)condition, false; }
static int wait_for(void const *condition, void const *lock)
{
  OH_CHECK(*holder_of(lock) == running);
  *holder_of(lock) = NULL;
  wait_until(never, condition);
  wait_until(is_free, lock);
  *holder_of(lock) = running;
  return 0;
}
static int wake_all(void const *condition)
{
  for (struct fiber *f = fibers; f < fibers + FIBERS; f++)
    if (f->exists && f->ready == never && f->argument == condition) f->ready = NULL;
  return point(), 0;
}

static void *(*thread_function)(void *);
static void *thread_argument;
static void run_thread(void)
{
  thread_function(thread_argument);
  running->exists = false;
  resume(choose(true));
}
static int create(void *(*function)(void *), void *argument)
{
  OH_CHECK(!fibers[THREAD].exists);
  if (below(2000) == 0) return EAGAIN;
  thread_function = function;
  thread_argument = argument;
  begin_fiber(THREAD, run_thread, NULL);
  return 0;
}
static bool has_ended(void const *fiber) { return !((struct fiber const *)fiber)->exists; }
static int join_thread(void) { return wait_until(has_ended, &fibers[THREAD]), 0; }

#define pthread_mutex_lock(lock) take(lock)
#define pthread_mutex_trylock(lock) try_to_take(lock)
#define pthread_mutex_unlock(lock) leave(lock)
#define pthread_mutex_init(lock, attributes) make_free(lock)
#define pthread_cond_wait(condition, lock) wait_for(condition, lock)
#define pthread_cond_signal(condition) wake_all(condition) /* one waits for each */
#define pthread_cond_broadcast(condition) wake_all(condition)
#define pthread_cond_init(condition, attributes) ((void)(condition))
#define pthread_create(thread, attributes, function, argument) (*(thread) = pthread_self(), create(function, argument))
#define pthread_join(thread, result) join_thread()
#define pthread_kill(thread, signal) (fibers[THREAD].exists ? 0 : ESRCH)
#define pthread_setname_np(thread, name) ((void)(thread), (void)(name))
#define sched_yield() yield()
#define cpu_relax() ((void)(running->patient ? yield() : (void)0))

/* --- atomic accesses ---------------------------------------------------------------------------------------------- */

#undef oh_load_relaxed
#undef oh_store_relaxed
#undef oh_cas_seq_cst
#define oh_load_relaxed(p) (point(), __atomic_load_n((p), __ATOMIC_RELAXED))
#define oh_store_relaxed(p, v) (point(), __atomic_store_n((p), (v), __ATOMIC_RELAXED))
#define oh_cas_seq_cst(p, expected, v) \
  (point(), __atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))

#endif
