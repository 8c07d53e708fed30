/* SPDX-License-Identifier: MIT */
#include "region_alone.h"
#include <caml/domain.h>
#include <caml/domain_state.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#if OUTHEAP_REGION_OCAML5

/* The domain that asked may leave first, so this record belongs to all of them: the last one frees it. */
struct request {
  void (*f)(void *), (*each)(void *);
  void *data;
  uint64_t *waited;
  bool done;
  int called; /* domains that have called `each` */
  int left;   /* domains that have left */
};

static void linger(int i)
{
  struct timespec little = { 0, 20000 };
  if (i < 200) sched_yield();
  else nanosleep(&little, NULL);
}

static void run(caml_domain_state *domain, void *data, int participating, caml_domain_state **domains)
{
  struct request *r = data;
  if (domains[0] == domain) {
    uint64_t from = now();
    r->f(r->data);
    *r->waited = now() - from;
    __atomic_store_n(&r->done, true, __ATOMIC_RELEASE); /* pairs with the acquire below: what f wrote is seen */
  }
  else
    for (int i = 0; !__atomic_load_n(&r->done, __ATOMIC_ACQUIRE); i++) linger(i);
  if (r->each != NULL) { /* `data` is the caller's, who waits too */
    r->each(r->data);
    __atomic_add_fetch(&r->called, 1, __ATOMIC_ACQ_REL);
    for (int i = 0; __atomic_load_n(&r->called, __ATOMIC_ACQUIRE) != participating; i++) linger(i);
  }
  if (__atomic_add_fetch(&r->left, 1, __ATOMIC_ACQ_REL) == participating) free(r);
}

bool outheap_region_alone(void (*f)(void *), void (*each)(void *), void *data, uint64_t *waited)
{
  struct request *r = calloc(1, sizeof *r);
  if (r == NULL) return false;
  *r = (struct request){ f, each, data, waited, false, 0, 0 };
  while (!caml_try_run_on_all_domains(&run, r, NULL)) {} /* a collection, or somebody else's request, comes first */
  return true;
}

#else

bool outheap_region_alone(void (*f)(void *), void (*each)(void *), void *data, uint64_t *waited)
{
  uint64_t from = now(); /* whoever runs OCaml code holds the lock that we hold */
  f(data);
  if (each != NULL) each(data);
  *waited = now() - from;
  return true;
}

#endif
