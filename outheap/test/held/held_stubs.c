/* SPDX-License-Identifier: MIT */
/* Makes the helper's thread stop where it is worst, as a signal SIGSTOP for it alone would: with a lock, or with pools
   or entries in hand. The functions for mutexes and threads below take the place of libc's in this program, and call
   them. Also: a thread without the runtime lock that ends the helper; phases of the collector; waits of a thread. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define CAML_NAME_SPACE
#define CAML_INTERNALS
#include <caml/alloc.h>
#include <caml/domain_state.h>
#include <caml/major_gc.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <caml/version.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <outheap.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* When the helper has taken a lock; has left one, with work in hand; has taken one within another, to note what it has
   done before it waits. */
enum { NEVER, LOCK, WORK, NESTED };
static atomic_int kind, count, held;
static _Thread_local int depth; /* locks */
static atomic_bool holding;
static atomic_long milliseconds;

static bool is_helper(void)
{
  char name[16] = "";
  return Caml_state_opt == NULL && pthread_getname_np(pthread_self(), name, sizeof name) == 0
         && strcmp(name, "outheap-helper") == 0;
}

static void hold(bool locked)
{
  int now = atomic_load_explicit(&kind, memory_order_relaxed);
  if (now == NEVER || (now == WORK) == locked || (now == NESTED && depth < 2) || !is_helper()) return;
  if (atomic_fetch_sub(&count, 1) != 0) return;
  long ms = atomic_load(&milliseconds);
  struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
  atomic_store(&holding, true);
  while (nanosleep(&t, &t) != 0) {}
  atomic_store(&kind, NEVER);
  atomic_fetch_add(&held, 1);
  atomic_store(&holding, false);
}

#define NEXT(name) \
  static __typeof__(&name) volatile next; \
  if (next == NULL) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int pthread_mutex_lock(pthread_mutex_t *m)
{
  NEXT(pthread_mutex_lock);
  int error = next(m);
  depth++;
  hold(true);
  return error;
}

int pthread_mutex_unlock(pthread_mutex_t *m)
{
  NEXT(pthread_mutex_unlock);
  int error = next(m);
  depth--;
  hold(false);
  return error;
}

/* Threads of the variant have a small stack: 128 KiB beside thread-local variables. */
static atomic_bool fails;
int pthread_create(pthread_t *thread, pthread_attr_t const *attributes, void *(*function)(void *), void *argument)
{
  size_t stack = 0;
  NEXT(pthread_create);
  if (attributes != NULL) pthread_attr_getstacksize(attributes, &stack);
  if (stack != 0 && stack < 1 << 20 && atomic_load(&fails)) return EAGAIN;
  return next(thread, attributes, function, argument);
}

/* When that happens for the n-th time from now on, the helper sleeps for so long. */
value held_arm(value when, value n, value ms)
{
  atomic_store(&milliseconds, Long_val(ms));
  atomic_store(&count, Int_val(n));
  atomic_store(&kind, Int_val(when));
  return Val_unit;
}

value held_holding(value unit) { return (void)unit, Val_bool(atomic_load(&holding)); }
value held_armed(value unit) { return (void)unit, Val_bool(atomic_load(&kind) != NEVER || atomic_load(&holding)); }
value held_count(value unit) { return (void)unit, Val_int(atomic_load(&held)); }
value held_fail(value unit) { return atomic_store(&fails, true), unit; }

/* How often this thread has waited, and nanoseconds that it had a processor for. */
value held_waits(value unit)
{
  struct rusage r;
  (void)unit;
  getrusage(RUSAGE_THREAD, &r);
  return Val_long(r.ru_nvcsw);
}

value held_processor(value unit)
{
  struct timespec t;
  (void)unit;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return Val_long(t.tv_sec * 1000000000 + t.tv_nsec);
}

/* Nanoseconds that it waited for a processor; 0 where the system does not tell. One thread asks. */
value held_delayed(value unit)
{
  static int file = -2;
  char text[64];
  unsigned long long waited = 0;
  (void)unit;
  if (file == -2) file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  ssize_t n = file < 0 ? -1 : pread(file, text, sizeof text - 1, 0);
  if (n < 0) return Val_long(0);
  text[n] = 0;
  if (sscanf(text, "%*u %llu", &waited) != 1) waited = 0;
  return Val_long(waited);
}

/* 0 before marking, then as Phase_sweep_and_mark_main, … */
value held_phase(value unit)
{
  (void)unit;
#if OCAML_VERSION >= 50500
  return Val_int(caml_gc_phase);
#else
  return Val_int(caml_gc_phase + 1);
#endif
}

/* Has everything been swept in this domain, marked? */
value held_swept(value unit) { return (void)unit, Val_bool(Caml_state->sweeping_done); }
value held_marked(value unit) { return (void)unit, Val_bool(Caml_state->marking_done); }

/* A thread that OCaml does not know. */
static pthread_t thread;

static void *stop(void *unused)
{
  outheap_stop_helper();
  return unused;
}
value held_stop_elsewhere(value unit)
{
  if (pthread_create(&thread, NULL, stop, NULL) != 0) abort();
  return unit;
}
value held_join(value unit)
{
  pthread_join(thread, NULL);
  return unit;
}

/* The error of unshare(CLONE_NEWUSER), which wants a process with one thread; 0: it was done. */
value held_unshare(value unit)
{
  (void)unit;
  return Val_int(unshare(CLONE_NEWUSER) == 0 ? 0 : errno);
}
