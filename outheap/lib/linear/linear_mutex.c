/* SPDX-License-Identifier: MIT */
/* Locks of tables that several threads use at once. A block of OCaml has the address of the lock, which does not move,
   and has cache lines of its own.

   `owner` is the thread that has the mutex, or 0: each thread compares it with itself alone, so relaxed loads and
   stores are enough. A process that was forked by the owner has the lock, too, and gives it: pthread_self is the same
   there, and a plain mutex does not ask who gives it (one that checks has the kernel's number of the thread, which
   changes). */
#include "linear_lock.h"
#include <caml/alloc.h>
#include <caml/custom.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/signals.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define TRIES 60 /* before a thread sleeps */

typedef struct { pthread_mutex_t mutex; pthread_t owner; } linear_lock;

static linear_lock *lock_of(value lock) { return *(linear_lock **)Data_custom_val(lock); }

static void lock_end(value lock)
{
  linear_lock *l = lock_of(lock);
  if (l == NULL) return;
  (void)pthread_mutex_destroy(&l->mutex);
  free(l);
}

static struct custom_operations lock_operations = {
  "outheap_linear.lock",      lock_end,
  custom_compare_default,     custom_hash_default,
  custom_serialize_default, /* it cannot be marshalled */
  custom_deserialize_default, custom_compare_ext_default,
  custom_fixed_length_default};

value outheap_linear_ml_lock_new(value unit)
{
  (void)unit;
  value lock = caml_alloc_custom(&lock_operations, sizeof(linear_lock *), 0, 1);
  linear_lock *l = outheap_linear_lock_lines(sizeof *l);
  *(linear_lock **)Data_custom_val(lock) = NULL;
  if (l == NULL || pthread_mutex_init(&l->mutex, NULL) != 0) {
    free(l);
    caml_raise_out_of_memory();
  }
  __atomic_store_n(&l->owner, (pthread_t)0, __ATOMIC_RELAXED);
  *(linear_lock **)Data_custom_val(lock) = l;
  return lock;
}

static int try(linear_lock *l)
{
  int why = pthread_mutex_trylock(&l->mutex);
  if (why == 0) __atomic_store_n(&l->owner, pthread_self(), __ATOMIC_RELAXED);
  return why;
}

value outheap_linear_ml_lock_try(value lock) { return Val_long(try(lock_of(lock))); }

value outheap_linear_ml_lock_wait(value lock)
{
  CAMLparam1(lock);
  linear_lock *l = lock_of(lock);
  int why = EBUSY;
  if (__atomic_load_n(&l->owner, __ATOMIC_RELAXED) == pthread_self()) CAMLreturn(Val_long(EDEADLK));
  /* Whoever has it gives it soon, as a rule; sleeping, and giving the domain away, costs more than some tries. */
  for (int i = 0; i < TRIES && why != 0; i++) {
    if (i % 10 == 9) sched_yield();
    why = try(l);
  }
  if (why != 0) {
    caml_enter_blocking_section();
    why = pthread_mutex_lock(&l->mutex);
    if (why == 0) __atomic_store_n(&l->owner, pthread_self(), __ATOMIC_RELAXED);
    caml_leave_blocking_section();
  }
  CAMLreturn(Val_long(why));
}

value outheap_linear_ml_lock_give(value lock)
{
  linear_lock *l = lock_of(lock);
  __atomic_store_n(&l->owner, (pthread_t)0, __ATOMIC_RELAXED);
  (void)pthread_mutex_unlock(&l->mutex);
  return Val_unit;
}

/* Has this thread the lock? */
value outheap_linear_ml_lock_is_ours(value lock)
{
  return Val_bool(__atomic_load_n(&lock_of(lock)->owner, __ATOMIC_RELAXED) == pthread_self());
}

/* Gives the first `count` of these. In C, so that no signal is handled in between. */
value outheap_linear_ml_locks_give(value locks, value count)
{
  for (intnat i = 0; i < Long_val(count); i++) (void)outheap_linear_ml_lock_give(Field(locks, i));
  return Val_unit;
}
