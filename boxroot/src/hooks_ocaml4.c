/* SPDX-License-Identifier: MIT */
/* Contact with the runtime of OCaml 4.14: one domain, and a master lock.

   The runtime has no call that tells whether this thread holds the lock. The inline paths compare a thread-local
   word, bxr_lock, with the identity of the domain; the word must never say "held" on two threads that run. Threads
   take and release the lock through two hooks of the runtime, and ours are in them; but there are three ways past our
   hooks:
   - another library replaces the hooks without calling the earlier ones (systhreads does when it is initialised);
   - Thread.yield, and the tick that calls it: a thread gives the lock away, sleeps, and returns with the lock;
   - the end of a thread that OCaml made: it releases the lock, and destructors of thread-local data run after that.

   So the word is a token. One thread has it at most, `holder` says which, and only a thread that holds the lock takes
   it: in our hook, in a collection, or on a slow path when the lock turns out to be held. If another thread has the
   token still, that one gave the lock away past our hooks. Its token is revoked: its word is overwritten, and then it
   is waited for until it cannot be in the middle of an inline path any more (bxr_os_await_progress). The wait is not
   needed after a yield, where the thread sleeps; a thread in Thread.yield is still on systhreads' list of threads,
   one that has ended is not. Who lost the token deletes by way of the bitmaps, and finds the truth at its next slow
   path. Nobody ever acts upon pools without the token or, for a moment, upon having revoked everybody else's.

   A thread whose end cannot be noticed is not given the token, since its word would have to be overwritten after the
   end.

   Memory orders. `holder` is written under the lock, but for the end of a thread, which takes itself out: with a
   compare-and-swap, and while `holder` is BUSY it waits, as somebody is using its record. The words and the records'
   fields are relaxed: each is written by its thread under the lock, or by the revoker, and the lock's hand-over
   orders the two. What the revoked thread had begun is ordered before what the revoker does by the system call or the
   interruption that proves its progress. */
#include <boxroot/config.h>
#if !BXR_OCAML5
#include "runtime.h"
#include "atomic.h"
#include "debug.h"
#include "platform.h"
#include <caml/domain.h>
#include <caml/io.h>
#include <caml/major_gc.h>
#include <caml/memprof.h>
#include <caml/minor_gc.h>
#include <caml/misc.h>
#include <caml/roots.h>
#include <caml/signals.h>
#include <pthread.h>

CAMLextern void (*caml_leave_blocking_section_hook)(void);
CAMLextern void (*caml_enter_blocking_section_hook)(void);

/* == Caml_state, the one there is: this thread has the token. Written by the thread, or by who revokes. */
BXR_THREAD_LOCAL void *bxr_lock;

typedef struct { void (*enter)(void), (*leave)(void); } hooks;

typedef struct thread {
  void **word;        /* its bxr_lock */
  long os;            /* its name for the system */
  void *context;      /* what systhreads' list of threads shows for it; NULL: not known */
  uint64_t active;    /* bit k: it is within the pair k of our hooks */
  int enrolled;       /* the enrolment under which its end is noticed */
  hooks through;      /* the runtime's hooks when it last passed ours, or was given the token */
  bool inside;        /* then it got the lock; otherwise it released it, or has not been seen yet */
  bool ended;         /* it has passed its end (atomic) */
} thread;
static BXR_THREAD_LOCAL thread me;
static thread *holder; /* who has the token (atomic) */
#define BUSY ((thread *)1)

static bxr_callbacks const *callbacks;
static void (*earlier_scan)(scanning_action);
static bool attached, attached_before, scan_left;
static bool missed; /* a thread went past our hooks, other than by a yield (under the lock) */
static bool blind;  /* pointers into the stack tell nothing in this program: OCaml runs on a stack of its own making */

static hooks current_hooks(void)
{
  return (hooks){ bxr_load_relaxed(&caml_enter_blocking_section_hook),
                  bxr_load_relaxed(&caml_leave_blocking_section_hook) };
}

static bool hooks_are(hooks h)
{
  hooks now = current_hooks();
  return now.enter == h.enter && now.leave == h.leave;
}

static void passed(bool inside)
{
  me.inside = inside;
  me.through = current_hooks();
}

/* --- the end of a thread ------------------------------------------------------------------------------------------ */

static pthread_key_t end_key;
static int enrolment, enrolments; /* number of the current key, 0: none; of keys so far */
extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *) __attribute__((weak));
extern char __dso_handle __attribute__((weak));

static void thread_end(void *unused)
{
  (void)unused;
  bxr_store_relaxed(&bxr_lock, (void *)NULL);
  passed(false);
  me.enrolled = 0;
  bxr_store_release(&me.ended, true);
  for (;;) {
    thread *t = bxr_load_seq_cst(&holder);
    if (t == &me ? bxr_cas_seq_cst(&holder, &t, (thread *)NULL) : t != BUSY) return;
    if (t == BUSY) bxr_os_yield();
  }
}

/* Sees to it that the end of this thread will be noticed. Needs the lock. */
static bool enrol(void)
{
  if (enrolment == 0 && pthread_key_create(&end_key, thread_end) == 0) enrolment = ++enrolments;
  if (me.enrolled != 0 && (me.enrolled == enrolment || me.enrolled == -1)) return true;
  me.word = &bxr_lock;
  me.os = bxr_os_thread();
  if (enrolment != 0 && pthread_setspecific(end_key, &me) == 0) me.enrolled = enrolment;
  else if (__cxa_thread_atexit_impl != NULL && __cxa_thread_atexit_impl(thread_end, NULL, &__dso_handle) == 0)
    me.enrolled = -1;
  else return false;
  bxr_store_relaxed(&me.ended, false);
  return true;
}

/* A forked process has one thread. */
static void after_fork(void)
{
  if (bxr_load_relaxed(&bxr_lock) == NULL) bxr_store_seq_cst(&holder, (thread *)NULL);
}

/* --- systhreads' list of threads ---------------------------------------------------------------------------------- */

/* The list begins with the thread that holds the lock. */
static void first_context(struct caml_memprof_th_ctx *context, void *first)
{
  if (*(void **)first == NULL) *(void **)first = context;
}

typedef struct { void *wanted; bool found; } context_search;

static void find_context(struct caml_memprof_th_ctx *context, void *data)
{
  context_search *s = data;
  s->found |= s->wanted == context;
}

/* Whether t, which holds the lock no more, is asleep in Thread.yield, if it has not gone past our hooks otherwise. */
static bool is_listed(thread *t)
{
  context_search s = { t->context, false };
  bool there_are_threads = caml_channel_mutex_lock != NULL;
  if (s.wanted == NULL || s.wanted == me.context || !there_are_threads) return false;
  caml_memprof_th_ctx_iter_hook(find_context, &s);
  return s.found;
}

/* --- the token ---------------------------------------------------------------------------------------------------- */

/* Takes the token from t. True when t cannot be in the middle of an inline path any more; false: not known, and it
   has not been waited for. Needs holder == BUSY, so that t is there. */
static bool revoke_token(thread *t, bool may_wait)
{
  bxr_store_seq_cst(t->word, (void *)NULL);
  if (!missed && hooks_are(t->through) && is_listed(t)) return true;
  if (!may_wait) return false;
  t->context = NULL;
  bxr_os_await_progress(t->os, &t->ended);
  return true;
}

/* This thread holds the lock: it gets the token, unless that takes a wait and it may not wait. */
static void take_token(bool may_wait)
{
  passed(true);
  if (bxr_load_relaxed(&bxr_lock) == NULL) {
    thread *t = bxr_load_acquire(&holder);
    while (t != NULL && t != &me) {
      if (t == BUSY) {
        bxr_os_yield();
        t = bxr_load_acquire(&holder);
      } else if (bxr_cas_seq_cst(&holder, &t, BUSY)) {
        if (revoke_token(t, may_wait)) break;
        bxr_store_seq_cst(&holder, t);
        return;
      }
    }
    bool ready = enrol();
    if (ready && me.context == NULL) caml_memprof_th_ctx_iter_hook(first_context, &me.context);
    bxr_store_seq_cst(&holder, ready ? &me : NULL);
    if (ready) bxr_store_relaxed(&bxr_lock, (void *)Caml_state);
  }
  BXR_ASSERT(bxr_load_relaxed(&bxr_lock) == NULL || bxr_load_relaxed(&holder) == &me);
  missed = false;
}

/* It is about to release the lock. */
static void drop_token(void)
{
  if (!me.inside) missed = true;
  passed(false);
  if (bxr_load_relaxed(&bxr_lock) == NULL) return;
  BXR_ASSERT(bxr_load_relaxed(&holder) == &me);
  bxr_store_relaxed(&bxr_lock, (void *)NULL);
  bxr_store_release(&holder, (thread *)NULL);
}

/* --- hooks on the lock -------------------------------------------------------------------------------------------- */

/* Whenever ours are found not in front, other hooks are there, which may or may not call ours. With a single pair of
   functions of ours they might be called by ours, and call them, for ever. So there is one pair for each pair of
   foreign hooks that was ever found, which it calls from then on. Beyond 32 such pairs ours cannot be in front: then
   each hand-over of the token is a revocation. */
#define EACH_PAIR(X) \
  X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) \
  X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)
enum { PAIRS = 32 };
static hooks earlier[PAIRS]; /* what the pair k calls; once written, never changed */
static int pairs;            /* of `earlier`, in use */
static int front = -1;       /* the pair that was last put, or found, in front */

/* Pairs within pairs belong to the same blocking section. One that is reached again from itself, by way of a library
   that calls what calls it, goes on to what was there first. */
static hooks const *within(int k) { return &earlier[(me.active >> k & 1) != 0 ? 0 : k]; }

static void enter(int k)
{
  uint64_t active = me.active;
  hooks const *next = within(k);
  if (active == 0) drop_token();
  me.active = active | (uint64_t)1 << k;
  next->enter();
  me.active = active;
}

static void leave(int k)
{
  uint64_t active = me.active;
  hooks const *next = within(k);
  me.active = active | (uint64_t)1 << k;
  next->leave();
  me.active = active;
  if (active != 0) return;
  if (me.inside) missed = true;
  if (attached) take_token(false);
  else passed(true);
}

#define DEFINE(k) static void enter_##k(void) { enter(k); } static void leave_##k(void) { leave(k); }
EACH_PAIR(DEFINE)
#define NAME(k) { enter_##k, leave_##k },
static hooks const ours[PAIRS] = { EACH_PAIR(NAME) };

static void set_hooks(hooks h)
{
  caml_enter_blocking_section_hook = h.enter;
  caml_leave_blocking_section_hook = h.leave;
}

static bool in_front(void) { return front >= 0 && hooks_are(ours[front]); }

static int pair_for_current(void)
{
  for (int k = 0; k < pairs; k++)
    if (hooks_are(ours[k]) || hooks_are(earlier[k])) return k;
  if (pairs == PAIRS) return -1;
  earlier[pairs] = current_hooks();
  return pairs++;
}

/* Puts ours in front, and takes the token. Needs the lock. */
static void go_in_front(void)
{
  if (!in_front()) {
    missed = true;
    int k = pair_for_current();
    if (k >= 0) set_hooks(ours[k]);
    front = k;
  }
  take_token(true);
}

/* Takes our hooks out as far as they are in front. */
static void step_back(void)
{
  for (int k = 0; k < pairs; k++)
    if (hooks_are(ours[k])) {
      set_hooks(earlier[k]);
      k = -1;
    }
  front = -1;
}

/* --- the truth ---------------------------------------------------------------------------------------------------- */

typedef enum { NO, YES, UNKNOWN } answer;

/* Whether the runtime's pointers are into this thread's stack: whoever takes the lock gets them restored to his.
   (Native code: the first two; the last is bytecode's.) They stay when the lock is released, so this is for threads
   of which the hooks have told nothing. */
static answer stack_says(void)
{
  if (Caml_state == NULL) return NO;
  /* A coroutine's, or the system does not tell. */
  if (bxr_os_on_this_stack(__builtin_frame_address(0)) != BXR_OS_YES) return UNKNOWN;
  void *p[] = { Caml_state->top_of_stack, Caml_state->bottom_of_stack, Caml_state->local_roots,
                Caml_state->external_raise };
  answer result = UNKNOWN; /* without pointers: no OCaml code is active, and C code may well have the lock */
  for (int i = 0; i < 4; i++) {
    if (p[i] == NULL) continue;
    if (bxr_os_on_this_stack(p[i]) == BXR_OS_YES) return YES;
    result = NO;
  }
  return blind && result == NO ? UNKNOWN : result;
}

/* Needs nothing, but the caller claims to hold the lock. Where it cannot be known, the claim counts. */
static bool is_held(void)
{
  /* It cannot have got the lock past our hooks since it released it. */
  if (!me.inside && hooks_are(me.through)) return false;
  if (stack_says() != NO) return true;
  /* It may have started OCaml on a coroutine's stack. */
  return !bxr_load_relaxed(&attached_before) && bxr_os_is_first_thread();
}

void bxr_runtime_check_lock(void)
{
  if (bxr_load_relaxed(&bxr_lock) == NULL && !is_held()) return;
  if (attached) go_in_front();
  else take_token(true);
}

/* --- the collector ------------------------------------------------------------------------------------------------ */

void bxr_visit(bxr_visitor const *visitor, value v, uintptr_t *slot)
{
  ((scanning_action)visitor->action)(v, (value *)slot);
}

/* Nothing looks at values between a minor collection's visit and its end: there is no deletion barrier. */
void bxr_visit_young(bxr_visitor const *visitor, value v, uintptr_t *slot) { bxr_visit(visitor, v, slot); }

static void scan_hook(scanning_action action)
{
  if (earlier_scan != NULL) earlier_scan(action);
  if (!attached) return;
  go_in_front();
  bxr_visitor visitor = { (void (*)(void))action, NULL };
  if (action == &caml_oldify_one) callbacks->minor(0, &visitor);
  else if (action == &caml_darken) callbacks->cycle_start(0, &visitor);
  else callbacks->all(0, &visitor);
}

void bxr_runtime_attach(bxr_callbacks const *c)
{
  callbacks = c;
  attached = true;
  if (!scan_left) {
    earlier_scan = caml_scan_roots_hook;
    caml_scan_roots_hook = scan_hook;
  }
  if (!attached_before) {
    bxr_store_relaxed(&attached_before, true);
    (void)pthread_atfork(NULL, NULL, after_fork);
    blind = stack_says() == NO || bxr_os_on_this_stack(__builtin_frame_address(0)) == BXR_OS_NO;
  }
  go_in_front();
}

void bxr_runtime_detach(void)
{
  attached = false;
  scan_left = caml_scan_roots_hook != scan_hook;
  if (!scan_left) caml_scan_roots_hook = earlier_scan;
  step_back();
  /* No other thread uses the library now. */
  thread *t = bxr_load_acquire(&holder);
  if (t != NULL && t != BUSY && bxr_cas_seq_cst(&holder, &t, BUSY)) {
    bxr_store_relaxed(t->word, (void *)NULL);
    bxr_store_seq_cst(&holder, (thread *)NULL);
  }
  if (enrolment != 0) pthread_key_delete(end_key);
  enrolment = 0;
}

void *bxr_runtime_self(void) { return bxr_self(); }
unsigned bxr_runtime_domain(void) { return 0; }
bool bxr_runtime_alone(void) { return true; }
bool bxr_runtime_leaving(void) { return false; }
bool bxr_runtime_marked(void) { return true; }
uintptr_t bxr_runtime_cycle(void) { return 0; }
bool bxr_runtime_over(void) { return true; } /* as far as markers are concerned: they never come to our memory */
bool bxr_runtime_finish_marking(void) { return true; }
void bxr_runtime_darken(value v) { (void)v; }
uint32_t bxr_runtime_darken_slots(uintptr_t const *slots, uint32_t n) { (void)slots; (void)n; return 0; }
uintptr_t bxr_runtime_block_header(size_t words) { (void)words; return 0; }
bool bxr_runtime_block_visited(uintptr_t header) { (void)header; return true; }

bxr_minor_range bxr_runtime_minor_range(void)
{
  uintptr_t start = (uintptr_t)Caml_state->young_start, end = (uintptr_t)Caml_state->young_end;
  return (bxr_minor_range){ start, end - start };
}

#endif
