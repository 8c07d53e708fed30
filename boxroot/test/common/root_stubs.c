/* SPDX-License-Identifier: MIT */
/* The API of the library for OCaml code, and small facts about the process. */
#include "check.h"

#include <sched.h>

value t_create(value v) { return val_of_root(boxroot_create(v)); }
value t_get(value r) { return boxroot_get(root_of_val(r)); }
value t_get_ref(value r) { return val_of_root((boxroot)boxroot_get_ref(root_of_val(r))); }
value t_deref(value ref) { return *(value const *)root_of_val(ref); }
value t_delete(value r) { boxroot_delete(root_of_val(r)); return Val_unit; }

/* The root after the modification, or 0 when it failed. */
value t_modify(value r, value v)
{
  boxroot b = root_of_val(r);
  return boxroot_modify(&b, v) ? val_of_root(b) : Val_int(0);
}

/* A modification that fails must leave the root as it was. */
value t_modify_keeps(value r, value v)
{
  boxroot b = root_of_val(r), before = b;
  value old = boxroot_get(b);
  if (boxroot_modify(&b, v)) return val_of_root(b);
  CHECK(b == before && boxroot_get(b) == old, "a failing boxroot_modify changed the root");
  return Val_int(0);
}

value t_delete_nolock(value r)
{
  boxroot b = root_of_val(r);
  caml_enter_blocking_section();
  boxroot_delete(b);
  caml_leave_blocking_section();
  return Val_unit;
}

/* --- a thread that OCaml knows nothing of, which deletes the roots it is sent ------------------------------------- */

enum { QUEUE = 4096 };
static boxroot queue[QUEUE];
static unsigned queue_in, queue_out;
static _Bool queue_busy, queue_there;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_changed = PTHREAD_COND_INITIALIZER;

static void *undertaker(void *arg)
{
  (void)arg;
  pthread_mutex_lock(&queue_lock);
  for (;;) {
    while (queue_in == queue_out) {
      queue_busy = 0;
      pthread_cond_broadcast(&queue_changed);
      pthread_cond_wait(&queue_changed, &queue_lock);
    }
    queue_busy = 1;
    boxroot r = queue[queue_out++ % QUEUE];
    pthread_mutex_unlock(&queue_lock);
    boxroot_delete(r);
    pthread_mutex_lock(&queue_lock);
    pthread_cond_broadcast(&queue_changed);
  }
  return NULL;
}

/* Waits while it holds the domain lock: were deletion to wait for the lock or for the GC, the program would hang
   here. */
value t_delete_elsewhere(value r)
{
  pthread_mutex_lock(&queue_lock);
  if (!queue_there) {
    pthread_t id;
    queue_there = 1;
    CHECK(pthread_create(&id, NULL, undertaker, NULL) == 0, "pthread_create");
    pthread_detach(id);
  }
  while (queue_in - queue_out == QUEUE) pthread_cond_wait(&queue_changed, &queue_lock);
  queue[queue_in++ % QUEUE] = root_of_val(r);
  pthread_cond_broadcast(&queue_changed);
  pthread_mutex_unlock(&queue_lock);
  return Val_unit;
}

value t_delete_elsewhere_done(value unit)
{
  (void)unit;
  pthread_mutex_lock(&queue_lock);
  while (queue_there && (queue_in != queue_out || queue_busy)) pthread_cond_wait(&queue_changed, &queue_lock);
  pthread_mutex_unlock(&queue_lock);
  return Val_unit;
}

/* --- the rest of the API ------------------------------------------------------------------------------------------ */

value t_setup(value unit) { (void)unit; return Val_bool(boxroot_setup()); }
value t_teardown(value unit) { (void)unit; boxroot_teardown(); return Val_unit; }
value t_status(value unit) { (void)unit; return Val_int(boxroot_status()); }

/* Slots of memory that the library has in use for roots, and all it has taken. `untold` stands for version 0.4.0, which
   does not say. */
#if TEST_RIVAL
#define STATISTIC(field, untold) Val_long(untold)
#else
static boxroot_statistics statistics(void)
{
  boxroot_statistics s;
  boxroot_get_stats(&s);
  return s;
}
#define STATISTIC(field, untold) Val_long(statistics().field)
#endif

value t_pools_in_use(value unit) { (void)unit; return STATISTIC(pools_in_use, -1); }
value t_pool_capacity(value unit) { (void)unit; return STATISTIC(pool_capacity, 2040); }
value t_darkened_pools(value unit) { (void)unit; return STATISTIC(darkened_pools, -1); }
value t_bytes_reserved(value unit) { (void)unit; return STATISTIC(bytes_reserved, -1); }

value t_is_checked(value unit) { (void)unit; return Val_bool(TEST_CHECKED); }
value t_is_stw(value unit) { (void)unit; return Val_bool(TEST_STW); }
value t_is_conservative(value unit) { (void)unit; return Val_bool(TEST_CONSERVATIVE); }
value t_is_rival(value unit) { (void)unit; return Val_bool(TEST_RIVAL); }
value t_is_sanitized(value unit) { (void)unit; return Val_bool(TEST_SANITIZED); }
value t_is_tsan(value unit)
{
  (void)unit;
#ifdef __SANITIZE_THREAD__
  return Val_true;
#else
  return Val_false;
#endif
}
value t_is_thread_unsafe(value unit)
{
  (void)unit;
#if TEST_RIVAL
  return Val_false;
#else
  return Val_bool(BOXROOT_THREAD_UNSAFE);
#endif
}

/* --- calls without the domain lock, which must fail and say why --------------------------------------------------- */

static void expect_eperm(_Bool failed, char const *what)
{
  CHECK(failed, "%s succeeded without the domain lock", what);
  CHECK(errno == EPERM, "%s without the domain lock: errno is %d", what, errno);
  char const *s = boxroot_error_string();
  CHECK(s != NULL && strstr(s, "lock") != NULL, "boxroot_error_string after %s without the lock: %s", what, s);
}

static void on_thread(void *(*test)(void *), void *argument)
{
  pthread_t t;
  CHECK(pthread_create(&t, NULL, test, argument) == 0, "pthread_create");
  pthread_join(t, NULL);
}

static void in_blocking_section(void *(*test)(void *), void *argument)
{
  caml_enter_blocking_section();
  test(argument);
  caml_leave_blocking_section();
}

void t_without_lock(void *(*test)(void *), void *argument)
{
  on_thread(test, argument);
  in_blocking_section(test, argument);
}

/* old: the place of a root, which may be NULL. */
static void *try_to_change(void *old)
{
  boxroot *r = old, before = *r;
  errno = 0;
  expect_eperm(boxroot_create(Val_int(3)) == NULL, "boxroot_create");
  if (before != NULL) {
    errno = 0;
    expect_eperm(!boxroot_modify(r, Val_int(4)), "boxroot_modify");
    CHECK(*r == before, "a failing boxroot_modify changed the root");
  }
  return NULL;
}

static void *try_setup(void *unit)
{
  errno = 0;
  expect_eperm(!boxroot_setup(), "boxroot_setup");
  return unit;
}

/* old is a root, or 0. */
value t_eperm_blocking(value old)
{
  boxroot r = root_of_val(old);
  in_blocking_section(try_to_change, &r);
  return val_of_root(r);
}

value t_eperm_thread(value old)
{
  boxroot r = root_of_val(old);
  on_thread(try_to_change, &r);
  return val_of_root(r);
}

value t_eperm_setup(value unit)
{
  t_without_lock(try_setup, NULL);
  return unit;
}

/* --- the process -------------------------------------------------------------------------------------------------- */

static long statm(int field)
{
  long v[2] = {0, 0};
  FILE *f = fopen("/proc/self/statm", "r");
  if (f != NULL) {
    if (fscanf(f, "%ld %ld", &v[0], &v[1]) != 2) v[field] = 0;
    fclose(f);
  }
  return v[field] * (sysconf(_SC_PAGESIZE) / 1024);
}
value t_resident_kb(value unit) { (void)unit; return Val_long(statm(1)); }
value t_virtual_kb(value unit) { (void)unit; return Val_long(statm(0)); }

value t_exit_now(value code)
{
  fflush(stdout);
  fflush(stderr);
  _exit(Int_val(code));
}

value t_nap(value microseconds)
{
  caml_enter_blocking_section();
  if (Int_val(microseconds) == 0) sched_yield();
  else usleep((useconds_t)Int_val(microseconds));
  caml_leave_blocking_section();
  return Val_unit;
}

/* A block of C's static data that OCaml code may hold. */
static struct {
  header_t header;
  value field[2];
} c_static = { Caml_out_of_heap_header(2, 0), { Val_int(1789), Val_int(1848) } };
value t_c_static(value unit) { (void)unit; return (value)&c_static.field[0]; }
