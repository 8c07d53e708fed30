/* SPDX-License-Identifier: MIT */
#include "runtime_ocaml4_token.h"
#if !BXR_OCAML5
#include "atomic.h"
#include "fault.h"
#include "runtime_ocaml4_origin.h"
#include "self.h"
#include "thread.h"
#include <caml/domain.h>
#include <caml/io.h>
#include <caml/memprof.h>
#include <caml/misc.h>
#include <pthread.h>

CAMLextern void (*caml_leave_blocking_section_hook)(void);
CAMLextern void (*caml_enter_blocking_section_hook)(void);

typedef struct thread {
  void **word;        /* its bxr_lock */
  long os;            /* its name for the system */
  void *context;      /* what systhreads' list of threads shows for it; NULL: not known */
  int enrolled;       /* the enrolment under which its end is noticed */
  bxr_runtime_token_hooks through; /* the runtime's hooks when it last passed ours, or was given the token */
  bool inside;        /* then it got the lock; otherwise it released it, or has not been seen yet */
  bool ended;         /* it has passed its end (atomic) */
} thread;
static BXR_THREAD_LOCAL thread me;
static thread *holder; /* who has the token (atomic) */
#define BUSY ((thread *)1)

static bool missed_one; /* a thread bypassed our hooks, other than by a yield (under the lock) */

bxr_runtime_token_hooks bxr_runtime_token_current_hooks(void)
{
  return (bxr_runtime_token_hooks){ bxr_load_relaxed(&caml_enter_blocking_section_hook),
                                    bxr_load_relaxed(&caml_leave_blocking_section_hook) };
}

bool bxr_runtime_token_hooks_are(bxr_runtime_token_hooks h)
{
  bxr_runtime_token_hooks now = bxr_runtime_token_current_hooks();
  return now.enter == h.enter && now.leave == h.leave;
}

void bxr_runtime_token_passed(bool inside)
{
  me.inside = inside;
  me.through = bxr_runtime_token_current_hooks();
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
  bxr_runtime_token_passed(false);
  me.enrolled = 0;
  bxr_store_release(&me.ended, true);
  for (;;) {
    thread *t = bxr_load_seq_cst(&holder);
    if (t == &me ? bxr_cas_seq_cst(&holder, &t, (thread *)NULL) : t != BUSY) return;
    if (t == BUSY) bxr_thread_yield();
  }
}

/* Makes sure that the end of this thread will be noticed. Needs the lock. */
static bool enrol(void)
{
  if (enrolment == 0 && pthread_key_create(&end_key, thread_end) == 0) enrolment = ++enrolments;
  if (me.enrolled != 0 && (me.enrolled == enrolment || me.enrolled == -1)) return true;
  me.word = &bxr_lock;
  me.os = bxr_thread_id();
  if (enrolment != 0 && pthread_setspecific(end_key, &me) == 0) me.enrolled = enrolment;
  else if (__cxa_thread_atexit_impl != NULL && __cxa_thread_atexit_impl(thread_end, NULL, &__dso_handle) == 0)
    me.enrolled = -1;
  else return false;
  bxr_store_relaxed(&me.ended, false);
  return true;
}

void bxr_runtime_token_after_fork(void)
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

/* Whether t, which does not hold the lock any more, is asleep in Thread.yield, if it has not bypassed our hooks in
   another way. */
static bool is_listed(thread *t)
{
  context_search s = { t->context, false };
  bool there_are_threads = caml_channel_mutex_lock != NULL;
  if (s.wanted == NULL || s.wanted == me.context || !there_are_threads) return false;
  caml_memprof_th_ctx_iter_hook(find_context, &s);
  return s.found;
}

/* --- the token ---------------------------------------------------------------------------------------------------- */

/* Takes the token from t. True when t cannot be in the middle of an inline path any more; false: not known, and there
   was no wait. Needs holder == BUSY, so that t exists. */
static bool revoke_token(thread *t, bool may_wait)
{
  bxr_store_seq_cst(t->word, (void *)NULL);
  if (!missed_one && bxr_runtime_token_hooks_are(t->through) && is_listed(t)) return true;
  if (!may_wait) return false;
  t->context = NULL;
  bxr_thread_await_progress(t->os, &t->ended);
  return true;
}

void bxr_runtime_token_take(bool may_wait)
{
  bxr_runtime_token_passed(true);
  if (bxr_load_relaxed(&bxr_lock) == NULL) {
    thread *t = bxr_load_acquire(&holder);
    while (t != NULL && t != &me) {
      if (t == BUSY) {
        bxr_thread_yield();
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
    if (ready && bxr_runtime_origin_is_ocaml()) bxr_cache = &bxr_self_no_pool;
    if (ready) bxr_store_relaxed(&bxr_lock, (void *)Caml_state);
  }
  BXR_ASSERT(bxr_load_relaxed(&bxr_lock) == NULL || bxr_load_relaxed(&holder) == &me);
  missed_one = false;
}

void bxr_runtime_token_drop(void)
{
  if (!me.inside) missed_one = true;
  bxr_runtime_token_passed(false);
  if (bxr_load_relaxed(&bxr_lock) == NULL) return;
  BXR_ASSERT(bxr_load_relaxed(&holder) == &me);
  bxr_store_relaxed(&bxr_lock, (void *)NULL);
  bxr_store_release(&holder, (thread *)NULL);
}

void bxr_runtime_token_reset(void)
{
  thread *t = bxr_load_acquire(&holder);
  if (t != NULL && t != BUSY && bxr_cas_seq_cst(&holder, &t, BUSY)) {
    bxr_store_relaxed(t->word, (void *)NULL);
    bxr_store_seq_cst(&holder, (thread *)NULL);
  }
  if (enrolment != 0) pthread_key_delete(end_key);
  enrolment = 0;
}

bool bxr_runtime_token_inside(void) { return me.inside; }
bool bxr_runtime_token_released(void) { return !me.inside && bxr_runtime_token_hooks_are(me.through); }
void bxr_runtime_token_missed(void) { missed_one = true; }
#endif
