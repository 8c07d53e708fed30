/* SPDX-License-Identifier: MIT */
/* What locks.ml does in C: libraries that wrap or replace the blocking-section hooks, threads that end or live
   without OCaml code. */
#include "../common/check.h"

#include <sched.h>
#include <sys/resource.h>

CAMLextern void (*caml_enter_blocking_section_hook)(void);
CAMLextern void (*caml_leave_blocking_section_hook)(void);
extern value caml_thread_yield(value unit);
typedef struct { void (*enter)(void), (*leave)(void); } hooks;

static hooks current(void) { return (hooks){ caml_enter_blocking_section_hook, caml_leave_blocking_section_hook }; }
static void install(hooks h) { caml_enter_blocking_section_hook = h.enter; caml_leave_blocking_section_hook = h.leave; }

/* --- libraries that do not chain: replacement 0 puts systhreads' own hooks back, the others functions that call th  */

/* Set by l_remember when systhreads is initialised; right unless the library is used before. */
static hooks systhreads;

#define R10(X, t) X(t##0) X(t##1) X(t##2) X(t##3) X(t##4) X(t##5) X(t##6) X(t##7) X(t##8) X(t##9)
#define ALL(X) R10(X, 1) R10(X, 2) R10(X, 3) R10(X, 4)
#define DEFINE(n) \
  static void enter_##n(void) { __asm__ volatile("" :: "i"(n)); systhreads.enter(); } \
  static void leave_##n(void) { __asm__ volatile("" :: "i"(n)); systhreads.leave(); }
ALL(DEFINE)
#define NAME(n) { enter_##n, leave_##n },
static hooks const replacements[] = { ALL(NAME) };
enum { REPLACEMENTS = sizeof replacements / sizeof replacements[0] };

value l_replacements(value unit) { (void)unit; return Val_int(REPLACEMENTS); }
value l_remember(value unit)
{
  systhreads = current();
  return unit;
}
value l_replace(value i)
{
  install(Int_val(i) == 0 ? systhreads : replacements[Int_val(i) % REPLACEMENTS]);
  return Val_unit;
}

/* --- libraries that wrap, and later restore what they found ------------------------------------------------------- */

static hooks before[2];
static void enter_a(void) { before[0].enter(); }
static void leave_a(void) { before[0].leave(); }
static void enter_b(void) { before[1].enter(); }
static void leave_b(void) { before[1].leave(); }
static hooks const wrappers[2] = { { enter_a, leave_a }, { enter_b, leave_b } };

value l_wrap(value i)
{
  before[Int_val(i)] = current();
  install(wrappers[Int_val(i)]);
  return Val_unit;
}
value l_unwrap(value i)
{
  install(before[Int_val(i)]);
  return Val_unit;
}

/* --- deletions ---------------------------------------------------------------------------------------------------- */

/* Roots are deleted out of order, so that pools with a few free slots are many. A prime that divides none of the
   numbers of roots. */
enum { STRIDE = 7919 };

static boxroot *copy(value roots, size_t *n)
{
  *n = Wosize_val(roots);
  boxroot *r = malloc((*n + 1) * sizeof *r);
  CHECK(r != NULL, "malloc");
  for (size_t i = 0; i < *n; i++) r[i] = root_of_val(Field(roots, i));
  return r;
}

value l_delete_all_nolock(value roots)
{
  size_t n;
  boxroot *r = copy(roots, &n);
  caml_enter_blocking_section();
  for (size_t i = 0; i < n; i++) boxroot_delete(r[i * STRIDE % n]);
  caml_leave_blocking_section();
  free(r);
  return Val_unit;
}

/* From now on all threads share a processor. */
value l_one_processor(value unit)
{
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  return unit;
}

/* Creates n roots, which must be different cells, and deletes them. */
value l_fill(value vn)
{
  long n = Long_val(vn);
  boxroot *r = malloc((size_t)n * sizeof *r);
  CHECK(r != NULL, "malloc");
  for (long i = 0; i < n; i++) CHECK((r[i] = boxroot_create(Val_long(i))) != NULL, "boxroot_create");
  for (long i = 0; i < n; i++) CHECK(boxroot_get(r[i]) == Val_long(i), "root %ld", i);
  for (long i = 0; i < n; i++) boxroot_delete(r[i]);
  free(r);
  return Val_unit;
}

/* --- the end of a thread ------------------------------------------------------------------------------------------ */

typedef struct { boxroot *r; size_t n; int nap_ms; int creations; } legacy;
static long dead, created; /* threads that have ended; roots that they created then */
static pthread_key_t legacy_key;
static pthread_once_t legacy_once = PTHREAD_ONCE_INIT;
extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);
extern char __dso_handle;

static void execute(void *arg)
{
  legacy *l = arg;
  for (int i = 0; i < l->creations; i++) {
    errno = 0;
    if (boxroot_create(Val_int(i)) != NULL || errno != EPERM) __atomic_fetch_add(&created, 1, __ATOMIC_SEQ_CST);
  }
  for (size_t i = 0; i < l->n; i++) {
    if (l->nap_ms != 0 && i % 5000 == 0) usleep((unsigned)l->nap_ms * 1000);
    boxroot_delete(l->r[i * STRIDE % l->n]);
  }
  free(l->r);
  free(l);
  __atomic_fetch_add(&dead, 1, __ATOMIC_SEQ_CST);
}

static void make_key(void) { CHECK(pthread_key_create(&legacy_key, execute) == 0, "key"); }

static value die_with(value how, value nap, value creations, value roots)
{
  legacy *l = malloc(sizeof *l);
  CHECK(l != NULL, "malloc");
  l->creations = Int_val(creations);
  l->r = copy(roots, &l->n);
  l->nap_ms = Int_val(nap);
  if (Int_val(how) == 0) {
    pthread_once(&legacy_once, make_key);
    CHECK(pthread_setspecific(legacy_key, l) == 0, "setspecific");
  } else {
    CHECK(__cxa_thread_atexit_impl(execute, l, &__dso_handle) == 0, "atexit");
  }
  return Val_unit;
}

value l_die_with(value how, value nap, value roots) { return die_with(how, nap, Val_int(0), roots); }

/* And tries so often to create a root then. */
value l_die_creating(value how, value creations) { return die_with(how, Val_int(0), creations, Atom(0)); }
value l_created(value unit) { (void)unit; return Val_long(__atomic_load_n(&created, __ATOMIC_SEQ_CST)); }

value l_dead(value unit) { (void)unit; return Val_long(__atomic_load_n(&dead, __ATOMIC_SEQ_CST)); }

/* --- a registered thread of C, without a frame of OCaml ----------------------------------------------------------- */

static int try_all(void)
{
  boxroot r[100];
  for (int i = 0; i < 100; i++) {
    r[i] = boxroot_create(Val_int(i));
    if (r[i] == NULL) return 1;
  }
  for (int i = 0; i < 100; i++)
    if (boxroot_get(r[i]) != Val_int(i) || !boxroot_modify(&r[i], Val_int(i + 1))) return 2;
  for (int i = 0; i < 100; i++) boxroot_delete(r[i]);
  return 0;
}

static void *live_registered(void *mode)
{
  intptr_t bad = 0;
  if (caml_c_thread_register() != 1) return (void *)9;
  for (int round = 0; round < 5 && bad == 0; round++) {
    caml_leave_blocking_section();
    if ((bad = try_all()) == 0) {
      caml_thread_yield(Val_unit);
      bad = try_all();
    }
    if (bad == 0 && (intptr_t)mode == 2 && round == 2) {
      install(systhreads);
      bad = boxroot_setup() ? try_all() : 4;
    }
    caml_enter_blocking_section();
    if (bad == 0 && boxroot_create(Val_int(0)) != NULL) bad = 3; /* without the lock */
  }
  caml_c_thread_unregister();
  return (void *)bad;
}

value l_registered(value mode)
{
  pthread_t t;
  void *bad;
  CHECK(pthread_create(&t, NULL, live_registered, (void *)(intptr_t)Int_val(mode)) == 0, "pthread_create");
  caml_enter_blocking_section();
  pthread_join(t, &bad);
  caml_leave_blocking_section();
  return Val_long((intptr_t)bad);
}

/* --- scarcity ----------------------------------------------------------------------------------------------------- */

value l_exhaust_keys(value unit)
{
  pthread_key_t k;
  int n = 0;
  while (n < 100000 && pthread_key_create(&k, NULL) == 0) n++;
  (void)unit;
  return Val_int(n);
}

value l_limit_files(value on)
{
  static struct rlimit was;
  if (Bool_val(on)) {
    CHECK(getrlimit(RLIMIT_NOFILE, &was) == 0, "getrlimit");
    struct rlimit none = { 0, was.rlim_max };
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0, "setrlimit");
  } else {
    CHECK(setrlimit(RLIMIT_NOFILE, &was) == 0, "setrlimit");
  }
  return Val_unit;
}

/* Deletions that went by way of the bitmaps; 0 when all do, or when the library does not tell. */
value l_remote_deletions(value unit)
{
  (void)unit;
#if TEST_RIVAL || TEST_REMOTE
  return Val_int(0);
#else
  boxroot_statistics s;
  boxroot_get_stats(&s);
  return Val_long(s.delete_remote);
#endif
}
