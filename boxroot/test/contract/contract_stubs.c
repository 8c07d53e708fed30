/* SPDX-License-Identifier: MIT */
/* Threads whose domain has ended, and what else the public contract promises in rare situations. */
#include "../common/check.h"

extern void caml_minor_collection(void); /* the header that declares it is internal to the runtime */

#include <stdatomic.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* What malloc keeps of OCaml's large blocks is no memory of roots. */
value c_trim_malloc(value unit)
{
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  return unit;
}

/* --- destructors of thread-local data, which run after the domain of their thread has ended ----------------------- */

typedef struct last_act {
  boxroot *roots;
  long n;
  _Bool waits, late;
} last_act;

static last_act late; /* the roots that threads delete who ended before these were made */
static atomic_int acts_over, creations_refused, creations_granted, may_act, about_to_act;
static pthread_key_t last_act_key;
static pthread_once_t last_act_once = PTHREAD_ONCE_INIT;

static void act(void *a_)
{
  last_act *a = a_;
  atomic_fetch_add(&about_to_act, 1);
  while (a->waits && !atomic_load(&may_act)) usleep(100);
  last_act const *l = a->late ? &late : a;
  for (long i = 0; i < l->n; i++) boxroot_delete(l->roots[i]);
  errno = 0;
  boxroot r = boxroot_create(Val_int(3));
  if (r == NULL && errno == EPERM) atomic_fetch_add(&creations_refused, 1);
  else atomic_fetch_add(&creations_granted, 1);
#if !TEST_RIVAL
  errno = 0;
  CHECK((boxroot_domain_here() == NULL && errno == EPERM) == (r == NULL), "boxroot_domain_here: errno is %d", errno);
#endif
  free(a->roots);
  free(a);
  atomic_fetch_add(&acts_over, 1);
}

static void make_key(void) { CHECK(pthread_key_create(&last_act_key, act) == 0, "pthread_key_create"); }

extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

/* When this thread ends it deletes the roots and tries to create one. how: 0: the destructor of a POSIX key; 1: as C++
   and Rust do it. */
value c_last_act(value how, value roots, value waits)
{
  last_act *a = calloc(1, sizeof *a);
  CHECK(a != NULL, "calloc");
  a->n = (long)Wosize_val(roots);
  a->roots = malloc(sizeof *a->roots * (size_t)(a->n + 1));
  CHECK(a->roots != NULL, "malloc");
  for (long i = 0; i < a->n; i++) a->roots[i] = root_of_val(Field(roots, i));
  a->waits = Bool_val(waits);
  pthread_once(&last_act_once, make_key);
  if (Int_val(how) == 1 && __cxa_thread_atexit_impl != NULL)
    CHECK(__cxa_thread_atexit_impl(act, a, &__dso_handle) == 0, "__cxa_thread_atexit_impl");
  else CHECK(pthread_setspecific(last_act_key, a) == 0, "pthread_setspecific");
  return Val_unit;
}

/* The same; the roots are given later, before the thread may act. */
value c_late_act(value how)
{
  last_act *a = calloc(1, sizeof *a);
  CHECK(a != NULL, "calloc");
  a->waits = a->late = 1;
  pthread_once(&last_act_once, make_key);
  if (Int_val(how) == 1 && __cxa_thread_atexit_impl != NULL)
    CHECK(__cxa_thread_atexit_impl(act, a, &__dso_handle) == 0, "__cxa_thread_atexit_impl");
  else CHECK(pthread_setspecific(last_act_key, a) == 0, "pthread_setspecific");
  return Val_unit;
}

value c_late_roots(value roots)
{
  free(late.roots);
  late.n = (long)Wosize_val(roots);
  late.roots = malloc(sizeof *late.roots * (size_t)(late.n + 1));
  CHECK(late.roots != NULL, "malloc");
  for (long i = 0; i < late.n; i++) late.roots[i] = root_of_val(Field(roots, i));
  return Val_unit;
}

value c_may_act(value unit)
{
  atomic_store(&may_act, 1);
  return unit;
}

/* Waits until so many threads have reached their last step, or have finished it. */
static value wait_for(atomic_int *counter, int n)
{
  caml_enter_blocking_section();
  while (atomic_load(counter) < n) usleep(100);
  caml_leave_blocking_section();
  return Val_unit;
}
value c_wait_about(value n) { return wait_for(&about_to_act, Int_val(n)); }
value c_wait_over(value n) { return wait_for(&acts_over, Int_val(n)); }
value c_creations_granted(value unit) { (void)unit; return Val_int(atomic_load(&creations_granted)); }

/* --- a thread without the lock that deletes many ------------------------------------------------------------------ */

typedef struct { boxroot *r; long n; } batch;
static void *delete_batch(void *b_)
{
  batch *b = b_;
  for (long i = 0; i < b->n; i++) boxroot_delete(b->r[i]);
  return NULL;
}

/* Deletes all but each `keep`-th of the roots, on a thread that OCaml does not know. */
value c_delete_on_thread(value roots, value keep)
{
  long n = (long)Wosize_val(roots), k = 0;
  batch b = {malloc(sizeof *b.r * (size_t)(n + 1)), 0};
  CHECK(b.r != NULL, "malloc");
  for (long i = 0; i < n; i++)
    if (Int_val(keep) == 0 || i % Int_val(keep) != 0) b.r[k++] = root_of_val(Field(roots, i));
  b.n = k;
  pthread_t t;
  CHECK(pthread_create(&t, NULL, delete_batch, &b) == 0, "pthread_create");
  pthread_join(t, NULL);
  free(b.r);
  return Val_long(k);
}

value c_deleted(value unit)
{
  (void)unit;
#if TEST_RIVAL
  return Val_long(-1);
#else
  boxroot_statistics s;
  boxroot_get_stats(&s);
  return Val_long(s.delete_remote);
#endif
}

/* --- a handle on the domain --------------------------------------------------------------------------------------- */

#if !TEST_RIVAL
/* n roots of the same value, created and deleted by way of a handle; true when each held its value. */
value c_by_handle(value v_, value n_)
{
  CAMLparam1(v_);
  long n = Long_val(n_);
  boxroot *r = malloc(sizeof *r * (size_t)n);
  CHECK(r != NULL, "malloc");
  boxroot_domain d = boxroot_domain_here();
  CHECK(d != NULL, "boxroot_domain_here: %s", boxroot_error_string());
  for (int round = 0; round < 3; round++) {
    for (long i = 0; i < n; i++) {
      r[i] = boxroot_create_in(d, v_);
      CHECK(r[i] != NULL, "boxroot_create_in: %s", boxroot_error_string());
    }
    if (round == 1) caml_minor_collection();
    if (round == 2) caml_process_pending_actions();
    for (long i = 0; i < n; i++) CHECK(boxroot_get(r[i]) == v_, "root %ld of %ld lost its value", i, n);
    for (long i = 0; i < n; i++)
      if (i % 3 == 0) boxroot_delete(r[i]);
      else boxroot_delete_in(d, r[i]);
  }
  free(r);
  CAMLreturn(Val_true);
}

static void *handle_without_lock(void *unit)
{
  errno = 0;
  CHECK(boxroot_domain_here() == NULL && errno == EPERM, "boxroot_domain_here without the lock: errno %d", errno);
  return unit;
}

value c_handle_without_lock(value unit)
{
  t_without_lock(handle_without_lock, NULL);
  return unit;
}

/* The functions that other languages call: those that the library exports beside its inline ones. A library built for
   checks knows such a call by its address, and a value is seen through each of them. */
value c_by_address(value v_)
{
  CAMLparam1(v_);
  boxroot (*volatile create)(value) = boxroot_create;
  boxroot (*volatile create_in)(boxroot_domain, value) = boxroot_create_in;
  value (*volatile get)(boxroot) = boxroot_get;
  value const *(*volatile get_ref)(boxroot) = boxroot_get_ref;
  bool (*volatile modify)(boxroot *, value) = boxroot_modify;
  void (*volatile delete)(boxroot) = boxroot_delete;
  void (*volatile delete_in)(boxroot_domain, boxroot) = boxroot_delete_in;
  enum { N = 5000 };
  static boxroot r[N];
  boxroot_domain d = boxroot_domain_here();
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < N; i++) {
      r[i] = i % 2 == 0 ? create(v_) : create_in(d, v_);
      CHECK(r[i] != NULL, "no root: %s", boxroot_error_string());
    }
    caml_minor_collection();
    for (int i = 0; i < N; i++) CHECK(get(r[i]) == v_ && *get_ref(r[i]) == v_, "root %d lost its value", i);
    for (int i = 0; i < N; i++)
      CHECK(modify(&r[i], Val_int(i)) && get(r[i]) == Val_int(i), "root %d was not modified", i);
    for (int i = 0; i < N; i++)
      if (i % 3 == 0) delete(r[i]);
      else delete_in(d, r[i]);
  }
#if !BOXROOT_DEBUG
  CHECK(boxroot_report_roots() == UINT64_MAX, "the release build knows no roots");
#endif
  CAMLreturn(Val_unit);
}

value c_error_string(value unit)
{
  (void)unit;
  return caml_copy_string(boxroot_error_string());
}
#else
value c_by_address(value v) { (void)v; return Val_unit; }
value c_error_string(value unit) { (void)unit; return caml_copy_string(""); }
value c_by_handle(value v, value n) { (void)v; (void)n; return Val_true; }
value c_handle_without_lock(value unit) { return unit; }
#endif

/* Whether the library marks roots outside the collector's budget. Version 0.4.0 shows all roots at once. */
#if TEST_RIVAL
value c_is_paced(value unit) { (void)unit; return Val_true; }
#else
value c_is_paced(value unit) { (void)unit; return Val_bool(BOXROOT_PACING || BOXROOT_STW_SCAN); }
#endif
