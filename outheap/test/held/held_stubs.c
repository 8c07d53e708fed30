/* SPDX-License-Identifier: MIT */
/* Makes the helper's thread stop where it is worst, as a signal SIGSTOP for it alone would: with a lock, or with pools
   or entries in hand. The functions for mutexes and threads below take the place of libc's in this program, and call
   them. Also: a thread without the runtime lock that ends the helper; phases of the collector. */
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
#include <sys/syscall.h>
#include <unistd.h>

/* When the helper has taken a lock; has left one, with work in hand; has taken one within another, to note what it has
   done before it waits. */
enum { NEVER, LOCK, WORK, NESTED };
static atomic_int kind, count, held;
static _Thread_local int depth; /* locks */
static atomic_bool holding, released, waits; /* waits: it is also released when the first thread sleeps */

static bool is_helper(void)
{
  char name[16] = "";
  return Caml_state_opt == NULL && pthread_getname_np(pthread_self(), name, sizeof name) == 0
         && strcmp(name, "outheap-helper") == 0;
}

static bool sleeps(long task)
{
  char name[64], text[256] = "";
  snprintf(name, sizeof name, "/proc/self/task/%ld/stat", task);
  int file = open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  char const *state = n > 0 ? strrchr(text, ')') : NULL;
  return state != NULL && strncmp(state, ") S", 3) == 0;
}

static void hold(bool locked)
{
  int now = atomic_load_explicit(&kind, memory_order_relaxed);
  if (now == NEVER || (now == WORK) == locked || (now == NESTED && depth < 2) || !is_helper()) return;
  if (atomic_fetch_sub(&count, 1) != 0) return;
  atomic_store(&holding, true);
  while (!atomic_load(&released) && !(atomic_load(&waits) && sleeps(getpid()))) usleep(200);
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

/* Threads of the variant have a small stack: 1 MiB beside thread-local variables. */
static atomic_bool fails;
int pthread_create(pthread_t *thread, pthread_attr_t const *attributes, void *(*function)(void *), void *argument)
{
  size_t stack = 0;
  NEXT(pthread_create);
  if (attributes != NULL) pthread_attr_getstacksize(attributes, &stack);
  if (stack != 0 && stack < 2 << 20 && atomic_load(&fails)) return EAGAIN;
  return next(thread, attributes, function, argument);
}

/* When that happens for the n-th time from now on, the helper stands still until it is released. */
value held_arm(value when, value n)
{
  atomic_store(&released, false);
  atomic_store(&waits, false);
  atomic_store(&count, Int_val(n));
  atomic_store(&kind, Int_val(when));
  return Val_unit;
}
value held_release(value unit) { return atomic_store(&released, true), unit; }
value held_release_when_waiting(value unit) { return atomic_store(&waits, true), unit; }

value held_holding(value unit) { return (void)unit, Val_bool(atomic_load(&holding)); }
value held_armed(value unit) { return (void)unit, Val_bool(atomic_load(&kind) != NEVER || atomic_load(&holding)); }
value held_count(value unit) { return (void)unit, Val_int(atomic_load(&held)); }
value held_fail(value unit) { return atomic_store(&fails, true), unit; }

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
static atomic_long task;

static void *stop(void *unused)
{
  atomic_store(&task, (long)syscall(SYS_gettid));
  outheap_stop_helper();
  return unused;
}
value held_stop_elsewhere(value unit)
{
  if (pthread_create(&thread, NULL, stop, NULL) != 0) abort();
  return unit;
}
value held_sleeps_elsewhere(value unit) { return (void)unit, Val_bool(sleeps(atomic_load(&task))); }
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
