/* SPDX-License-Identifier: MIT */
/* A C thread that enters domains of its choice (OCaml 5): legal for the runtime while the domain's own thread is in a
   blocking section, and what caml_c_thread_register does for the main domain. */
#include "../common/check.h"

#include <semaphore.h>

#if OCAML5
extern void h_enter_domain(int id);
extern void h_leave_domain(void);
#else
static void h_enter_domain(int id) { (void)id; }
static void h_leave_domain(void) {}
#endif

static sem_t parked, leave, ask, done;
enum { VISITS = 3, EACH = 40 };
static boxroot made[VISITS * EACH];
static int count;
static struct { int domain, mode, n, bad; } order;

static int mix(int mode, int n)
{
  enum { KEEP = 64 };
  boxroot r[KEEP] = {NULL};
  int bad = 0;
  for (int i = 0; i < n; i++) {
    boxroot *slot = &r[(unsigned)i * 7u % KEEP];
    if (*slot != NULL) {
      value v = boxroot_get(*slot);
      if (!Is_long(v) || Long_val(v) % 10 != mode) bad++;
      boxroot_delete(*slot);
    }
    *slot = boxroot_create(Val_long((long)i * 10 + mode));
    if (*slot == NULL) bad++;
  }
  for (int i = 0; i < KEEP; i++)
    if (r[i] != NULL) {
      if (Long_val(boxroot_get(r[i])) % 10 != mode) bad++;
      boxroot_delete(r[i]);
    }
  return bad;
}

static void *foreign(void *unit)
{
  for (;;) {
    while (sem_wait(&ask) != 0) {}
    h_enter_domain(order.domain);
    if (order.mode == 0) {
      for (int i = 0; i < EACH && count < VISITS * EACH; i++, count++) {
        made[count] = boxroot_create(Val_int(count));
        CHECK(made[count] != NULL, "boxroot_create in domain %d: %s", order.domain, boxroot_error_string());
        CHECK(boxroot_modify(&made[count], Val_int(count)), "boxroot_modify");
        boxroot extra = boxroot_create(Val_int(-1));
        boxroot_delete(extra);
      }
    } else {
      order.bad = mix(order.mode, order.n);
    }
    h_leave_domain();
    sem_post(&done);
  }
  return unit;
}

value s_start_foreign(value unit)
{
  pthread_t t;
  sem_init(&parked, 0, 0);
  sem_init(&leave, 0, 0);
  sem_init(&ask, 0, 0);
  sem_init(&done, 0, 0);
  CHECK(pthread_create(&t, NULL, foreign, NULL) == 0, "pthread_create");
  return unit;
}

static void wait_for(sem_t *s)
{
  caml_enter_blocking_section();
  while (sem_wait(s) != 0) {}
  caml_leave_blocking_section();
}

/* The current domain waits outside, so that others can enter. */
value s_park(value unit)
{
  caml_enter_blocking_section();
  sem_post(&parked);
  while (sem_wait(&leave) != 0) {}
  caml_leave_blocking_section();
  return unit;
}
value s_unpark(value unit) { sem_post(&leave); return unit; }
value s_wait_parked(value unit) { wait_for(&parked); return unit; }

value s_foreign_enters(value domain, value round)
{
  (void)round;
  order.domain = Int_val(domain);
  order.mode = 0;
  sem_post(&ask);
  wait_for(&done);
  return Val_unit;
}

value s_foreign_check(value unit)
{
  (void)unit;
  int bad = 0;
  for (int i = 0; i < count; i++) {
    bad += boxroot_get(made[i]) != Val_int(i);
    boxroot_delete(made[i]);
  }
  count = 0;
  return Val_int(bad);
}

/* Mode 1: the calling thread works, in its own domain. Mode 2: the foreign thread works, in the domain of the
   caller. */
value s_race(value mode, value n)
{
  if (Int_val(mode) == 1) return Val_int(mix(1, Int_val(n)));
  order.domain = 0;
  order.mode = 2;
  order.n = Int_val(n);
  sem_post(&ask);
  wait_for(&done);
  return Val_int(order.bad);
}
