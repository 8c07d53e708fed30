/* SPDX-License-Identifier: MIT */
/* Unit tests of the API that need C: errors and errno, foreign threads, forks, statistics. */
#include "../common/check.h"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

_Static_assert(BOXROOT_NOT_SETUP == 0 && BOXROOT_RUNNING == 1 && BOXROOT_TORE_DOWN == 2 && BOXROOT_INVALID == 3,
               "status constants of 0.4.0");
_Static_assert(sizeof(boxroot) == sizeof(void *), "a root is a pointer");

value u_expect_tore_down(value root)
{
  boxroot r = root_of_val(root);
  errno = 0;
  CHECK(boxroot_create(Val_int(1)) == NULL, "boxroot_create succeeded after teardown");
  CHECK(boxroot_status() == BOXROOT_TORE_DOWN, "status is %d after teardown", boxroot_status());
  CHECK(strstr(boxroot_error_string(), "teardown") != NULL, "error string after teardown: %s", boxroot_error_string());
  if (!TEST_CHECKED && r != NULL) {
    CHECK(!boxroot_modify(&r, Val_int(1)), "boxroot_modify succeeded after teardown");
    CHECK(strstr(boxroot_error_string(), "teardown") != NULL, "error string after teardown: %s",
          boxroot_error_string());
    (void)*(value volatile const *)boxroot_get_ref(r); /* an unspecified value, but no crash */
    (void)boxroot_get(r);
    boxroot_delete(r);
  }
  return Val_unit;
}

value u_error_string(value unit) { (void)unit; return caml_copy_string(boxroot_error_string()); }

/* What boxroot_print_stats writes to the standard output. */
value u_printed_stats(value unit)
{
  (void)unit;
  static char buffer[65536];
  int p[2], out;
  fflush(stdout);
  CHECK(pipe(p) == 0, "pipe");
  out = dup(1);
  dup2(p[1], 1);
  boxroot_print_stats();
  fflush(stdout);
  dup2(out, 1);
  close(out);
  close(p[1]);
  ssize_t n = 0, k;
  while ((k = read(p[0], buffer + n, sizeof buffer - 1 - (size_t)n)) > 0) n += k;
  close(p[0]);
  buffer[n] = 0;
  return caml_copy_string(buffer);
}

/* One of the statistics, by name. */
value u_stat(value name)
{
#if TEST_RIVAL
  (void)name;
#else
  boxroot_statistics s;
  boxroot_get_stats(&s);
#define FIELD(f, meaning) if (strcmp(String_val(name), #f) == 0) return Val_long(s.f);
  BOXROOT_FIGURES(FIELD)
  BOXROOT_COUNTERS(FIELD)
#endif
  CHECK(0, "no such statistic");
  return Val_unit;
}

value u_pool_bytes(value unit)
{
  (void)unit;
#if TEST_RIVAL
  return Val_long(16384);
#else
  return Val_long((long)1 << BOXROOT_POOL_LOG_SIZE);
#endif
}

/* --- threads of C that register with OCaml ------------------------------------------------------------------------ */


enum { ROOTS = 300 };
static boxroot made[ROOTS];

static void registered_once(int round)
{
  CHECK(caml_c_thread_register() == 1, "caml_c_thread_register");
  if (OCAML5 || boxroot_status() == BOXROOT_RUNNING) {
    errno = 0;
    CHECK(boxroot_create(Val_int(0)) == NULL && errno == EPERM, "a registered thread without the lock created a root");
  }
  caml_acquire_runtime_system();
  for (int i = 0; i < ROOTS; i++) {
    value s = caml_copy_string("made by a thread of C");
    if (made[i] != NULL && i % 3 == 0) {
      CHECK(boxroot_modify(&made[i], s), "boxroot_modify: %s", boxroot_error_string());
    } else {
      if (made[i] != NULL) boxroot_delete(made[i]);
      made[i] = boxroot_create(s);
      CHECK(made[i] != NULL, "boxroot_create in round %d: %s", round, boxroot_error_string());
    }
    if (i % 7 == 0) (void)caml_alloc(100, 0);
  }
  for (int i = 0; i < ROOTS; i++)
    CHECK(strcmp(String_val(boxroot_get(made[i])), "made by a thread of C") == 0, "round %d, root %d", round, i);
  caml_release_runtime_system();
  for (int i = 0; i < ROOTS; i += 2) {
    boxroot_delete(made[i]);
    made[i] = NULL;
  }
  CHECK(caml_c_thread_unregister() == 1, "caml_c_thread_unregister");
}

static void *registered(void *rounds)
{
  for (int i = 0; i < (int)(intptr_t)rounds; i++) registered_once(i);
  return NULL;
}

value u_registered_thread(value rounds)
{
  pthread_t t;
  caml_enter_blocking_section();
  CHECK(pthread_create(&t, NULL, registered, (void *)(intptr_t)Int_val(rounds)) == 0, "pthread_create");
  pthread_join(t, NULL);
  caml_leave_blocking_section();
  for (int i = 1; i < ROOTS; i += 2) {
    CHECK(strcmp(String_val(boxroot_get(made[i])), "made by a thread of C") == 0, "root %d of a thread that ended", i);
    boxroot_delete(made[i]);
    made[i] = NULL;
  }
  return Val_unit;
}

/* --- deletions in the background, for a fork in the middle of them ------------------------------------------------ */

static boxroot *volatile victims;
static long victims_count;
static pthread_t killer_thread;
static void *killer(void *unit)
{
  (void)unit;
  for (long i = 0; i < victims_count; i++) boxroot_delete(victims[i]);
  return NULL;
}
value u_start_deleting(value count)
{
  victims_count = Long_val(count);
  victims = malloc(sizeof *victims * (size_t)victims_count);
  for (long i = 0; i < victims_count; i++) {
    victims[i] = boxroot_create(Val_long(i));
    CHECK(victims[i] != NULL, "boxroot_create");
  }
  CHECK(pthread_create(&killer_thread, NULL, killer, NULL) == 0, "pthread_create");
  return Val_unit;
}
value u_stop_deleting(value unit)
{
  (void)unit;
  pthread_join(killer_thread, NULL);
  free(victims);
  return Val_unit;
}

/* --- deletion in signal handlers of a thread that does not hold the lock ------------------------------------------ */

static struct {
  boxroot *roots;
  size_t count, next, handled;
} doomed;

static bool delete_next(void)
{
  size_t i = __atomic_fetch_add(&doomed.next, 1, __ATOMIC_RELAXED);
  if (i < doomed.count) boxroot_delete(doomed.roots[i]);
  return i < doomed.count;
}

static void handler(int signal)
{
  (void)signal;
  doomed.handled += delete_next();
}

static void mask(int how)
{
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  pthread_sigmask(how, &set, NULL);
}

/* Before there are other threads, which have the same mask. */
value u_block_alarms(value unit) { mask(SIG_BLOCK); return unit; }

/* Some deletions are interrupted by a handler that deletes as well. */
static void *delete_interrupted(void *unit)
{
  struct itimerval often = { { 0, 10 }, { 0, 10 } }, never = { { 0, 0 }, { 0, 0 } };
  mask(SIG_UNBLOCK);
  setitimer(ITIMER_REAL, &often, NULL);
  while (delete_next()) {}
  setitimer(ITIMER_REAL, &never, NULL);
  mask(SIG_BLOCK);
  return unit;
}

/* Deletes the roots of an array in a blocking section of this thread, or else on one that OCaml does not know. Returns
   how many the handler has deleted. */
value u_delete_in_handlers(value blocking, value roots)
{
  pthread_t other;
  sigaction(SIGALRM, &(struct sigaction){ .sa_handler = handler }, NULL);
  memset(&doomed, 0, sizeof doomed);
  doomed.count = Wosize_val(roots);
  doomed.roots = malloc(doomed.count * sizeof *doomed.roots);
  CHECK(doomed.roots != NULL, "malloc");
  for (size_t i = 0; i < doomed.count; i++) doomed.roots[i] = root_of_val(Field(roots, i));
  caml_enter_blocking_section();
  if (Bool_val(blocking)) delete_interrupted(NULL);
  else {
    CHECK(pthread_create(&other, NULL, delete_interrupted, NULL) == 0, "pthread_create");
    pthread_join(other, NULL);
  }
  caml_leave_blocking_section();
  free(doomed.roots);
  return Val_long(doomed.handled);
}

/* --- what creation costs ------------------------------------------------------------------------------------------ */

/* What lies between two calls of it is counted (test_cost.py). */
__attribute__((noinline)) void u_mark(void) { __asm__ volatile("" ::: "memory"); }

/* A root in each element that is none. */
value u_create_missing(value roots)
{
  long n = 0;
  u_mark();
  for (size_t i = 0; i < Wosize_val(roots); i++)
    if (Field(roots, i) == Val_int(0)) Field(roots, i) = val_of_root(boxroot_create(Val_long(i))), n++;
  u_mark();
  return Val_long(n);
}

/* --- other languages' view: see cxx.cpp and compat_040.c ---------------------------------------------------------- */

__attribute__((weak)) int cxx_test(int n) { (void)n; return -1; }
value u_cxx(value n) { return Val_int(cxx_test(Int_val(n))); }
extern int compat_040_test(value v);
value u_compat_040(value v) { return Val_int(compat_040_test(v)); }
