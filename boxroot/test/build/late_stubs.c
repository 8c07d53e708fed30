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

static void *sleep_on(void *unused)
{
  for (;;) pause();
  return unused;
}

/* So many threads that OCaml does not know. */
value late_threads(value count)
{
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  for (long i = 0; i < Long_val(count); i++) {
    pthread_t t;
    if (pthread_create(&t, &small, sleep_on, NULL) != 0) abort();
  }
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

#if OCAML_VERSION >= 50500
/* A thread of C is registered with the domain of that number, loses its alternate stack, as other libraries do it, and
   uses the library with the lock. The result is what failed. */
#include <caml/threads.h>
#include <signal.h>
static uintnat its_domain;
static int wrong;
static void *work_in_domain(void *unused)
{
  if (!caml_c_thread_register_in_domain(its_domain)) abort();
  if (sigaltstack(&(stack_t){ .ss_flags = SS_DISABLE }, NULL) != 0) abort();
  for (int i = 0; i < 1000; i++) {
    caml_leave_blocking_section();
    boxroot r = boxroot_create(Val_int(i));
    if (r == NULL || boxroot_get(r) != Val_int(i) || !boxroot_modify(&r, Val_int(i + 1))) wrong++;
    if (r != NULL) boxroot_delete(r);
    caml_enter_blocking_section();
  }
  caml_c_thread_unregister();
  return unused;
}
value late_registered(value domain)
{
  pthread_t t;
  its_domain = (uintnat)Long_val(domain);
  caml_enter_blocking_section();
  if (pthread_create(&t, NULL, work_in_domain, NULL) != 0) abort();
  pthread_join(t, NULL);
  caml_leave_blocking_section();
  return Val_int(wrong);
}
#else
value late_registered(value domain) { (void)domain; return Val_int(0); }
#endif

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
