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
  void (*f)(void *);
  void *data;
  uint64_t *waited;
  bool done;
  int left; /* domains that have left */
};

static void run(caml_domain_state *domain, void *data, int participating, caml_domain_state **domains)
{
  struct request *r = data;
  if (domains[0] == domain) {
    uint64_t from = now();
    r->f(r->data);
    *r->waited = now() - from;
    __atomic_store_n(&r->done, true, __ATOMIC_RELEASE); /* pairs with the acquire below: what f wrote is seen */
  }
  else {
    struct timespec little = { 0, 20000 };
    for (int i = 0; !__atomic_load_n(&r->done, __ATOMIC_ACQUIRE); i++)
      if (i < 200) sched_yield();
      else nanosleep(&little, NULL);
  }
  if (__atomic_add_fetch(&r->left, 1, __ATOMIC_ACQ_REL) == participating) free(r);
}

bool outheap_region_alone(void (*f)(void *), void *data, uint64_t *waited)
{
  struct request *r = calloc(1, sizeof *r);
  if (r == NULL) return false;
  *r = (struct request){ f, data, waited, false, 0 };
  while (!caml_try_run_on_all_domains(&run, r, NULL)) {} /* a collection, or somebody else's request, comes first */
  return true;
}

#else

bool outheap_region_alone(void (*f)(void *), void *data, uint64_t *waited)
{
  uint64_t from = now(); /* whoever runs OCaml code holds the lock that we hold */
  f(data);
  *waited = now() - from;
  return true;
}

#endif
