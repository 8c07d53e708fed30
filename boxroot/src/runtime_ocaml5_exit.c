/* SPDX-License-Identifier: MIT */
#include "runtime_ocaml5_exit.h"
#if BXR_OCAML5
#include "atomic.h"
#include "object.h"
#include "runtime_end.h"
#include "thread.h"
#include <pthread.h>
#include <signal.h>

/* With glibc, destructors registered by __cxa_thread_atexit_impl (as those of C++ and Rust are) run before those of
   POSIX keys, and the last registered first. Elsewhere a POSIX key is used, whose destructor usually runs before those
   of keys that are made later; and slow paths find out by themselves (bxr_runtime_self). */
extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));
static pthread_key_t end_of_thread;
static bool have_key;
BXR_INTERNAL_DATA_HERE BXR_THREAD_LOCAL bool bxr_runtime_terminating BXR_TLS_MODEL;
static BXR_THREAD_LOCAL int terminating_id BXR_TLS_MODEL; /* its unique_id */

/* How often the hook was put in place; 0: it is not there. And whether a thread may be running, as far as is known,
   whose domain ended when it was not. (atomic, both) */
static unsigned watch, watches;
static bool strays = true;
static BXR_THREAD_LOCAL unsigned seen BXR_TLS_MODEL; /* the watch in which this thread was found with a domain */

static void reset_caml_state(void *unused)
{
  (void)unused;
#if defined(HAS_FULL_THREAD_VARIABLES)
  caml_state = NULL;
#endif
}

static void forget_domain_at_exit(void)
{
  if (__cxa_thread_atexit_impl != NULL && __cxa_thread_atexit_impl(reset_caml_state, NULL, &__dso_handle) == 0) return;
  if (have_key) (void)pthread_setspecific(end_of_thread, &bxr_runtime_terminating);
}

/* The thread still has the lock as long as it is the same domain, and has not ended. */
static __attribute__((noinline)) void *self_if_current(void *self)
{
  if (((caml_domain_state *)self)->unique_id == terminating_id && caml_domain_is_terminating()) return self;
  reset_caml_state(NULL);
  return NULL;
}

/* The runtime's backup thread acts for a domain that waits outside OCaml, and can run finalisers. It is the one that
   gets no signals, not even those of its own faults; but up to OCaml 5.2 the threads of ended domains may get none
   either. Then such a thread keeps its pointer, and counts as one without the lock. */
#define BACKUP_IS_KNOWN (OCAML_VERSION >= 50300)
static bool is_backup_thread(void)
{
  sigset_t blocked;
  return pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, SIGSEGV) == 1 &&
         sigismember(&blocked, SIGINT) == 1 && sigismember(&blocked, SIGTERM) == 1;
}

/* Whether OCaml code has called this thread's C code in the current domain. */
static bool has_frames(caml_domain_state *state)
{
#if BOXROOT_CONSERVATIVE
  (void)state;
  return false;
#else
  return state->c_stack != NULL && bxr_thread_stack_has(state->c_stack) == BXR_THREAD_YES;
#endif
}

/* A domain's own thread has an alternate stack for signals, which the runtime takes away when the domain has ended; so
   have the other threads of OCaml. Without it, this can be the thread of an ended domain. Domain 0 does not end, and
   the thread on which a C program started it may be without. */
static bool has_left(caml_domain_state *state)
{
  stack_t s;
  return state->id != 0 && sigaltstack(NULL, &s) == 0 && (s.ss_flags & SS_DISABLE) != 0 && !has_frames(state);
}

/* A domain that is about to end may have passed the place where it would have called the hook, so its thread is asked
   each time. */
static __attribute__((noinline)) void *self_unless_stray(void *self)
{
  unsigned now = bxr_load_relaxed(&watch);
  if (now != 0 && seen == now) return self;
  if (has_left(self)) {
    bool backup = is_backup_thread();
    if (!backup) reset_caml_state(NULL);
    if (!backup || !BACKUP_IS_KNOWN) return NULL;
  }
  if (now != 0 && !caml_domain_is_terminating()) seen = now;
  return self;
}

void *bxr_runtime_self(void)
{
  void *self = bxr_self();
  if (self == NULL) return NULL;
  if (BXR_UNLIKELY(bxr_runtime_end_reached())) {
    reset_caml_state(NULL);
#if BOXROOT_THREAD_UNSAFE
    bxr_only_domain = NULL;
#endif
    return NULL;
  }
  if (BXR_UNLIKELY(bxr_load_relaxed(&strays)) && !bxr_runtime_terminating) return self_unless_stray(self);
  return BXR_LIKELY(!bxr_runtime_terminating) ? self : self_if_current(self);
}

void bxr_runtime_exit_prepare(void)
{
  if (!have_key) have_key = pthread_key_create(&end_of_thread, reset_caml_state) == 0;
}

void bxr_runtime_exit_unload(void)
{
  if (have_key && bxr_object_is_unloading()) (void)pthread_key_delete(end_of_thread);
}

/* Each domain that runs has two threads, its own and the runtime's "backup" thread, but for domain 0 until it starts
   another. So has a domain that ran OCaml code; one that is being started may be without the second for a moment, but
   where this is the only domain, or the only one beside domain 0, there is none of these. */
static bool there_may_be_strays(void)
{
#if BOXROOT_CONSERVATIVE
  unsigned long running = bxr_runtime_is_only_domain() ? 1 : 0; /* 0: not known */
#else
  unsigned long running = (unsigned long)caml_num_domains_running;
#endif
  unsigned long threads = bxr_thread_count();
  bool settled = running == 1 || (running == 2 && bxr_runtime_state()->id != 0);
  return !settled || threads == 0 || threads > 2 * running;
}

static void begin_watch(bool strays_now)
{
  if (__cxa_thread_atexit_impl == NULL) bxr_runtime_exit_prepare();
  bxr_store_relaxed(&watch, ++watches);
  bxr_store_relaxed(&strays, strays_now);
}

void bxr_runtime_exit_watch(void) { begin_watch(there_may_be_strays()); }
void bxr_runtime_exit_watch_from_the_start(void) { begin_watch(false); }

void bxr_runtime_exit_unwatch(void)
{
  bxr_store_relaxed(&watch, 0u);
  bxr_store_relaxed(&strays, true);
}

/* An identity is used for the first time when the domain's number is the same: numbers are given in a row, and the
   least free identity is taken. */
bxr_runtime_strays bxr_runtime_strays_here(void)
{
  caml_domain_state *state = bxr_runtime_state();
  if (!bxr_load_relaxed(&strays) || (unsigned)state->unique_id == (unsigned)state->id) return BXR_RUNTIME_NO_STRAYS;
  if (there_may_be_strays()) return watches > 1 ? BXR_RUNTIME_OLD_STRAYS : BXR_RUNTIME_STRAYS;
  bxr_store_relaxed(&strays, false);
  return BXR_RUNTIME_NO_STRAYS;
}

void bxr_runtime_exit_begin(void)
{
  terminating_id = bxr_runtime_state()->unique_id;
  bxr_runtime_terminating = true;
  forget_domain_at_exit();
}

void bxr_runtime_exit_again(void)
{
  if (bxr_runtime_terminating) forget_domain_at_exit();
}
#endif
