/* SPDX-License-Identifier: MIT */
/* OCaml's lock: who holds it, taking it, giving it up. */
#include "obx.h"
#include <caml/callback.h>
#include <caml/domain.h>
#include <caml/memory.h>
#include <caml/signals.h>
#include <dlfcn.h>
#include <stdatomic.h>
#if OCAML5
#include <caml/fiber.h>
#else
#include <caml/roots.h>
#endif

/* Absent in programs without systhreads. The bytecode interpreter may load their library after this one: then
   look_for_threads finds them. */
extern int caml_c_thread_register(void) __attribute__((weak));
extern int caml_c_thread_unregister(void) __attribute__((weak));
static int (*c_thread_register)(void), (*c_thread_unregister)(void); /* since threads_running */
extern void caml_enter_blocking_section_no_pending(void);

/* As in src/error.rs. */
enum { ATTACHED, ATTACHED_REGISTERED, NESTED, NOT_STARTED, SHUT_DOWN, NO_THREADS, NOT_REGISTERED, OUT_OF_MEMORY };

/* What this thread did last with the lock by way of the safe layer. Rust code that OCaml calls without telling, such as
   a finaliser, finds the state of the frames above it. */
enum { UNKNOWN, HELD, RELEASED };
static _Thread_local int state;
static atomic_bool closed;          /* the door: no attach any more */
static atomic_bool threads_running; /* systhreads are initialised */

/* Whether it is certain that this thread holds the lock. (With OCaml 4 it may hold it otherwise: see
   ocaml4_token.h of the C library.) */
static bool lock_held(void) { return bxr_self() != NULL; }

/* Whether OCaml was started, as far as this thread can tell. */
bool obx_running(void)
{
#if OCAML5
  return Caml_state_opt != NULL || boxroot_status() != BOXROOT_NOT_SETUP;
#else
  return Caml_state != NULL;
#endif
}

void obx_close(void) { atomic_store(&closed, true); }

#if OCAML5 && OCAML_VERSION < 50200
/* Before 5.2 a thread that is being registered allocates with the state of the thread that ran last. If it is preempted
   there, it takes that state, and the stack in it, for its own. */
static _Thread_local bool registering;
static void (*runtimes_preemption)(void);
static void preempt(void)
{
  if (!registering) runtimes_preemption();
}
static void hook_preemption(void)
{
  if (caml_domain_external_interrupt_hook == preempt) return;
  runtimes_preemption = caml_domain_external_interrupt_hook;
  caml_domain_external_interrupt_hook = preempt;
}
static int register_thread(void)
{
  registering = true;
  int registered = c_thread_register();
  registering = false;
  return registered;
}
#else
static void hook_preemption(void) {}
static int register_thread(void) { return c_thread_register(); }
#endif

/* Would looking for threads again find nothing new? */
bool obx_threads_settled(void)
{
  return (caml_c_thread_register == NULL && obx_is_native()) || atomic_load(&threads_running);
}

/* With the lock. The Thread module registers this name when it is initialised. */
static void look_for_threads(void)
{
  if (obx_threads_settled() || caml_named_value("Thread.at_shutdown") == NULL) return;
  c_thread_register = caml_c_thread_register;
  c_thread_unregister = caml_c_thread_unregister;
  if (c_thread_register == NULL) {
    void *program = dlopen(NULL, RTLD_LAZY); /* and the libraries that it has loaded */
    if (program == NULL) return;
    *(void **)&c_thread_register = dlsym(program, "caml_c_thread_register");
    *(void **)&c_thread_unregister = dlsym(program, "caml_c_thread_unregister");
    dlclose(program);
  }
  if (c_thread_register == NULL || c_thread_unregister == NULL) return;
  hook_preemption();
  atomic_store(&threads_running, true);
}

#if !OCAML5
/* OCaml 4's systhreads scan the local roots of a thread that waits only if native OCaml code is active on it. So those
   of other threads are scanned by us: a thread is in this list while it does not hold the lock. The list belongs to who
   holds the lock. */
typedef struct parked {
  struct parked *next, **before; /* NULL: not in the list */
  struct caml__roots_block *roots;
} parked;
static _Thread_local parked me;
static parked *all_parked;
static void (*earlier_scan)(scanning_action);

static void scan_parked(scanning_action action)
{
  if (earlier_scan != NULL) earlier_scan(action);
  for (parked *p = all_parked; p != NULL; p = p->next)
    for (struct caml__roots_block *block = p->roots; block != NULL; block = block->next)
      for (intnat i = 0; i < block->ntables; i++)
        for (intnat j = 0; j < block->nitems; j++) action(block->tables[i][j], &block->tables[i][j]);
}

static void park(void)
{
  static bool hooked;
  if (!obx_is_native() || Caml_state->local_roots == NULL || Caml_state->bottom_of_stack != NULL) return;
  if (!hooked) {
    hooked = true;
    earlier_scan = caml_scan_roots_hook;
    caml_scan_roots_hook = scan_parked;
  }
  me.roots = Caml_state->local_roots;
  me.before = &all_parked;
  me.next = all_parked;
  if (me.next != NULL) me.next->before = &me.next;
  all_parked = &me;
}

static void unpark(void)
{
  if (me.before == NULL) return;
  *me.before = me.next;
  if (me.next != NULL) me.next->before = me.before;
  me.before = NULL;
}
#else
static void park(void) {}
static void unpark(void) {}
#endif

static void give_up_lock(void)
{
  park();
  caml_enter_blocking_section_no_pending();
}

static void take_lock_back(void)
{
  caml_leave_blocking_section();
  unpark();
}

/* For a thread that holds the lock, in a function that OCaml calls: its domain's record, or NULL when memory is short.
   *before is its state before, to be restored when the function ends. */
boxroot_domain obx_enter(int *before)
{
  *before = state;
  state = HELD;
  /* So that threads can attach in a program whose calls never release the lock. */
  look_for_threads();
  return boxroot_domain_here();
}

/* This thread's state, valid as long as the thread lives: for callers that do without obx_enter, once
   obx_threads_settled. */
int *obx_lock_state(void) { return &state; }

/* Gives the lock up. The result goes to obx_reacquire. */
int obx_release(void)
{
  int before = state;
  look_for_threads();
  state = RELEASED;
  give_up_lock();
  return before;
}

void obx_reacquire(int before)
{
  take_lock_back();
  state = before;
}

void obx_detach(int how)
{
  give_up_lock();
  state = how == ATTACHED ? RELEASED : UNKNOWN;
  if (how != ATTACHED_REGISTERED) return;
  c_thread_unregister();
  obx_stack_restore();
}

/* The record of the domain whose lock this thread holds, NULL when memory is short or after a teardown. The last one is
   tried first. */
static boxroot_domain record_here(void)
{
#if OCAML5
  static _Thread_local boxroot_domain last;
  if (last != NULL && bxr_load_relaxed(&((bxr_domain_head *)last)->state) == bxr_self()) return last;
#else
  static boxroot_domain last;
  if (last != NULL && bxr_self() != NULL) return last;
#endif
  return last = boxroot_domain_here();
}

/* Takes the lock; *domain is then set. The result goes to obx_detach if it is one of the first two. */
int obx_attach(boxroot_domain *domain)
{
  int how = ATTACHED;
  if (state == HELD || lock_held()) return NESTED;
  switch (boxroot_status()) {
  case BOXROOT_RUNNING: break;
  case BOXROOT_TORE_DOWN: return SHUT_DOWN;
  default: return NOT_STARTED;
  }
  if (atomic_load(&closed)) return SHUT_DOWN;
  if (state != RELEASED) {
    if (!atomic_load(&threads_running)) return NO_THREADS;
    /* 0 for a thread that OCaml knows already, too: it holds the lock, or it is in a blocking section that somebody
       else has opened, and how to close that one is not known. */
    obx_stack_remember();
    if (!register_thread()) return NOT_REGISTERED;
    obx_stack_keep();
    how = ATTACHED_REGISTERED;
  }
  take_lock_back();
  state = HELD;
  *domain = atomic_load(&closed) ? NULL : record_here();
  if (*domain != NULL) return how;
  obx_detach(how);
  return atomic_load(&closed) ? SHUT_DOWN : OUT_OF_MEMORY;
}

/* After OCaml's start-up, with the lock: sets the roots up. Then obx_release gives the lock up for the first time. */
bool obx_started(void)
{
  obx_stack_started();
  state = HELD;
  return boxroot_setup();
}
