/* SPDX-License-Identifier: MIT */
/* What late.ml (LATE_HOST) and its plug-in do in C. */
#define CAML_NAME_SPACE
#include <caml/custom.h>
#include <caml/mlvalues.h>
#include <caml/signals.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#if LATE_HOST
_Atomic(void (*)(void)) late_action;
static atomic_int at_the_end;
extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

static void last_act(void *unused)
{
  (void)unused;
  atomic_store(&at_the_end, 1);
  void (*f)(void);
  while ((f = atomic_load(&late_action)) == NULL) usleep(100);
  f();
}

value late_end_with(value how)
{
  pthread_key_t key;
  if (Int_val(how) == 1 && __cxa_thread_atexit_impl != NULL) __cxa_thread_atexit_impl(last_act, NULL, &__dso_handle);
  else if (pthread_key_create(&key, last_act) != 0 || pthread_setspecific(key, &at_the_end) != 0) abort();
  return Val_unit;
}

value late_wait_ended(value unit)
{
  while (!atomic_load(&at_the_end)) usleep(100);
  return unit;
}
#else
#include "boxroot.h"
extern _Atomic(void (*)(void)) late_action;
static boxroot *roots;
static long n;
static atomic_int over, made;

static void action(void)
{
  for (long i = 0; i < n; i++) boxroot_delete(roots[i]);
  for (int i = 0; i < 100; i++) {
    errno = 0;
    if (boxroot_create(Val_int(i)) != NULL || errno != EPERM) atomic_fetch_add(&made, 1);
  }
  atomic_store(&over, 1);
}

value late_act(value array)
{
  n = (long)Wosize_val(array);
  roots = malloc(sizeof *roots * (size_t)(n + 1));
  for (long i = 0; i < n; i++) roots[i] = (boxroot)((uintptr_t)Field(array, i) & ~(uintptr_t)1);
  atomic_store(&late_action, action);
  return Val_unit;
}

/* Waits as late_acted, but keeps the lock, so that no collection carries deletions out meanwhile. */
value late_acted_at_once(value unit)
{
  while (!atomic_load(&over)) usleep(100);
  return unit;
}

/* A deletion by a thread without the lock leaves the slot as it is; only the domain itself makes a free slot of it. */
value late_is_free(value root)
{
  return Val_bool((__atomic_load_n((uintptr_t *)((uintptr_t)root & ~(uintptr_t)1), __ATOMIC_RELAXED) & 1) != 0);
}

/* A block whose finaliser ends a root, and tries to make another. */
static atomic_int finalised;
static void finalise(value v)
{
  boxroot r = boxroot_create(Val_int(1));
  if (r != NULL) boxroot_delete(r);
  boxroot_delete(*(boxroot *)Data_custom_val(v));
  atomic_fetch_add(&finalised, 1);
}
static struct custom_operations operations = { "boxroot.test.late",        finalise,
                                               custom_compare_default,     custom_hash_default,
                                               custom_serialize_default,   custom_deserialize_default,
                                               custom_compare_ext_default, custom_fixed_length_default };
value late_owner(value i)
{
  boxroot r = boxroot_create(i);
  if (r == NULL) abort();
  value v = caml_alloc_custom(&operations, sizeof r, 0, 1);
  *(boxroot *)Data_custom_val(v) = r;
  return v;
}
value late_finalised(value unit) { (void)unit; return Val_int(atomic_load(&finalised)); }

/* The thread leaves the domain to the runtime's backup thread until `late_go_on`. */
static atomic_int sleeps, goes_on;
value late_sleep(value unit)
{
  caml_enter_blocking_section();
  atomic_store(&sleeps, 1);
  while (!atomic_load(&goes_on)) usleep(100);
  caml_leave_blocking_section();
  return unit;
}
value late_sleeps(value unit) { (void)unit; return Val_bool(atomic_load(&sleeps)); }
value late_go_on(value unit) { atomic_store(&goes_on, 1); return unit; }

value late_acted(value waits)
{
  if (Bool_val(waits)) {
    caml_enter_blocking_section();
    while (!atomic_load(&over)) usleep(100);
    caml_leave_blocking_section();
  }
  return Val_int(atomic_load(&made));
}
#endif
