/* SPDX-License-Identifier: MIT */
#include "ocaml4_token.h"
#if !BXR_OCAML5
#include "../os.h"
#include <caml/domain.h>
#include <caml/io.h>
#include <caml/memprof.h>
#include <caml/misc.h>
#include <pthread.h>
#include <signal.h>

/* --- threads that OCaml made -------------------------------------------------------------------------------------- */

/* A function of systhreads, if that is there: the descriptor of the thread that has the lock. Its fields are a number,
   0 for the program's first thread; and the function that the thread is to run, until it runs. */
extern value caml_thread_self(value unit) __attribute__((weak));
enum { NUMBER, FUNCTION };

typedef enum { UNKNOWN, OTHERS, OCAMLS } origin_of_thread;
static BXR_THREAD_LOCAL origin_of_thread origin;
static BXR_THREAD_LOCAL bool over;

/* Where OCaml code called this thread's C code, when it was last found alive. */
static BXR_THREAD_LOCAL struct { char *stack; uintptr_t address; } caller;

static bool has_signal_stack(void)
{
  stack_t s;
  return sigaltstack(NULL, &s) == 0 && (s.ss_flags & SS_DISABLE) == 0;
}

/* The end of the youngest frames of OCaml code, in native code or bytecode; NULL: there are none. */
static char *stack_frames(void)
{
  char *p = Caml_state->bottom_of_stack;
  return p != NULL ? p : (char *)Caml_state->external_raise;
}

static bool there_are_threads(void) { return caml_thread_self != NULL && caml_channel_mutex_lock != NULL; }

void bxr_runtime_origin_find(void)
{
  if (origin != UNKNOWN || !there_are_threads()) return;
  value self = caml_thread_self(Val_unit);
  if (!Is_block(self) || Field(self, NUMBER) == Val_int(0)) origin = OTHERS; /* no block: being registered */
  else if (Is_block(Field(self, FUNCTION))) origin = OCAMLS;
  else if (stack_frames() != NULL && has_signal_stack()) origin = OCAMLS; /* or one of C's that has such a stack */
}

bool bxr_runtime_origin_is_ocaml(void)
{
  if (BXR_LIKELY(origin != UNKNOWN)) return origin == OCAMLS;
  if (!there_are_threads() || bxr_thread_is_first() || !has_signal_stack()) origin = OTHERS;
  else bxr_runtime_origin_find(); /* not a thread that has ended: what is read of systhreads is there */
  return origin == OCAMLS;
}

bool bxr_runtime_origin_has_ended(void)
{
  if (BXR_LIKELY(origin == OTHERS) || !bxr_runtime_origin_is_ocaml()) return false;
  if (over) return true;
  char *stack = stack_frames();
  uintptr_t address = Caml_state->last_return_address;
  if (stack != NULL && stack == caller.stack && address == caller.address) return false;
  /* There are no frames either before OCaml code has called a function of C that may allocate. */
#if defined(HAS_STACK_OVERFLOW_DETECTION)
  over = Caml_state->external_raise == NULL && !has_signal_stack();
#else
  over = stack == NULL && caller.stack != NULL;
#endif
  if (over || stack == NULL) return over;
  char *here = __builtin_frame_address(0);
  if (bxr_thread_stack_has(here) == BXR_THREAD_YES) { /* not a coroutine's */
    if (bxr_thread_stack_has(stack) == BXR_THREAD_NO) return true; /* another thread has the lock */
    /* Bytecode: what the interpreter calls is further down the stack, and Thread.exit leaves its address. (In native
       code this is where OCaml code has last called a function that may allocate, perhaps from a deeper frame.) */
    over = Caml_state->external_raise != NULL && here > stack;
    if (over) return true;
  }
  caller.stack = stack;
  caller.address = address;
  return false;
}

/* --- what is known of a thread ------------------------------------------------------------------------------------ */

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

static bool missed_one; /* whether a thread bypassed our hooks, other than by a yield (under the lock) */

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
static int enrolment, enrolments; /* the number of the current key, 0: there is none; how many keys there were */
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

/* Ensures that the end of this thread will be noticed. False where that cannot be done. Needs the lock. */
static bool enrol(void)
{
  BXR_ASSERT(me.inside);
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
  BXR_ASSERT(me.inside && bxr_load_relaxed(&holder) == BUSY);
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
    if (ready && bxr_runtime_origin_is_ocaml()) bxr_cache = &bxr_no_pool;
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
void bxr_runtime_token_missed(void) { missed_one = true; }

/* --- whether the lock is held ------------------------------------------------------------------------------------- */

/* Whether it is certain that this thread does not hold the lock: it cannot have got the lock without passing our hooks
   since it released it. */
static bool has_released(void) { return !me.inside && bxr_runtime_token_hooks_are(me.through); }

static bool prepared; /* (atomic) */
static bool blind; /* whether pointers into the stack tell nothing in this program: OCaml runs on a stack of its own
                      making */

/* Whether the runtime's pointers are into this thread's stack: a thread that takes the lock gets its own restored.
   (Native code: the first two; the last is bytecode's.) They stay when the lock is released, so this is for threads
   about which the hooks say nothing. */
static bxr_thread_answer stack_says(void)
{
  if (Caml_state == NULL) return BXR_THREAD_NO;
  /* This is a coroutine's stack, or the system does not tell. */
  if (bxr_thread_stack_has(__builtin_frame_address(0)) != BXR_THREAD_YES) return BXR_THREAD_UNKNOWN;
  void *p[] = { Caml_state->top_of_stack, Caml_state->bottom_of_stack, Caml_state->local_roots,
                Caml_state->external_raise };
  /* Without pointers no OCaml code is active, and C code may well have the lock. */
  bxr_thread_answer result = BXR_THREAD_UNKNOWN;
  for (int i = 0; i < 4; i++) {
    if (p[i] == NULL) continue;
    if (bxr_thread_stack_has(p[i]) == BXR_THREAD_YES) return BXR_THREAD_YES;
    result = BXR_THREAD_NO;
  }
  return blind && result == BXR_THREAD_NO ? BXR_THREAD_UNKNOWN : result;
}

bool bxr_runtime_lock_is_held(void)
{
  if (has_released()) return false;
  if (stack_says() != BXR_THREAD_NO) return true;
  /* It may have started OCaml on a coroutine's stack. */
  return !bxr_load_relaxed(&prepared) && bxr_thread_is_first();
}

void bxr_runtime_lock_prepare(void)
{
  bxr_store_relaxed(&prepared, true);
  blind = stack_says() == BXR_THREAD_NO || bxr_thread_stack_has(__builtin_frame_address(0)) == BXR_THREAD_NO;
}
#endif
