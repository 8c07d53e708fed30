/* SPDX-License-Identifier: MIT */
/* Teardown: the memory of all roots is returned, but for what a marker may still read. */
#include "teardown.h"
#include "checked/account.h"
#include "delete.h"
#include "depot.h"
#include "orphans.h"
#include "os.h"
#include "records.h"
#include "sample.h"
#include "status.h"

/* Roots that were torn down may still be deleted, so the words of their pool must say that it has no owner. `purge`
   says that no marker may read it. */
static void dissolve_pools(bxr_pool **pools, unsigned n, bool purge)
{
  for (unsigned i = 0; i < n; i++) {
    bxr_pool_close(pools[i]);
    bxr_remote_discard(pools[i]);
    if (!purge) bxr_store_seq_cst(&pools[i]->home, (bxr_domain *)NULL);
    else bxr_pool_reset(pools[i]);
  }
  if (!purge) return;
  (void)bxr_depot_return(pools, n, true);
  for (unsigned i = 0; i < n; i++) bxr_pool_close(pools[i]);
}

static void dissolve_ring(bxr_pool *ring, bool purge)
{
  bxr_pool *pools[BXR_MOST_RETURNED_AT_ONCE];
  for (bxr_pool *p = ring; p != NULL;) {
    unsigned n = 0;
    do {
      pools[n++] = p;
      p = p->next == ring ? NULL : p->next;
    } while (p != NULL && n < BXR_MOST_RETURNED_AT_ONCE);
    dissolve_pools(pools, n, purge);
  }
}

static void reset_record(bxr_domain *d)
{
  bxr_domain kept = *d;
  kept.count.pools_in_use = 0;
  *d = (bxr_domain){ .cycle = kept.cycle, .count = kept.count, .storage = kept.storage, .next = kept.next };
  bxr_store_relaxed(&d->head.state, BXR_NOBODY);
  bxr_domain_set_current(d, NULL);
}

static void dissolve_domain(bxr_domain *d)
{
  for (int list = 0; list < BXR_LISTS; list++)
    dissolve_ring(d->lists[list], list == BXR_LIST_IDLE || !d->marking);
  reset_record(d);
}

static void dissolve_orphans(void)
{
  for (bxr_pool *p = bxr_orphans_take_all(), *next; p != NULL; p = next) {
    next = p->next;
    dissolve_pools(&p, 1, true);
  }
  reset_record(&bxr_orphans_home);
  bxr_depot_trim();
}

/* Whether a marker may read the pools of some domain, until this cycle is over. */
static bool kept_for_marker;
static uintptr_t kept_in_cycle;

/* The library is being unloaded, with the object that it is part of. If it was torn down, nobody is left who could
   still delete a root: objects that use this one are unloaded before, and by its priority this comes after the C++
   objects with static storage duration in this one. The destructor reaches the rest by a pointer: a program that is
   linked with the library and never tears it down needs none of it, and may be without OCaml (tests of Rust crates).
   It is volatile, or else compilers call the one function that it can be. */
static void (*volatile release_when_unloaded)(void);

static void release_all(void)
{
  bool read = kept_for_marker && kept_in_cycle == bxr_runtime_cycle() && !bxr_runtime_has_shut_down();
  if (!read && bxr_status_is_torn_down() && bxr_object_is_unloading()) {
    bxr_depot_release();
    bxr_storage_release_all();
    bxr_sample_release();
    bxr_account_release();
  }
}

__attribute__((destructor(101))) static void when_unloaded(void)
{
  void (*release)(void) = release_when_unloaded;
  if (release != NULL) release();
}

static void (*first_at_teardown)(void); /* (atomic) */
void bxr_teardown_first(void (*f)(void)) { bxr_store_relaxed(&first_at_teardown, f); }

void boxroot_teardown(void)
{
  for (int s = BOXROOT_RUNNING; !bxr_cas_seq_cst(&bxr_status, &s, BOXROOT_TORE_DOWN);)
    if (s != BOXROOT_RUNNING) return;
  release_when_unloaded = release_all;
  bxr_leaks_teardown();
  void (*first)(void) = bxr_load_relaxed(&first_at_teardown);
  if (first != NULL) first();
  bxr_runtime_detach();
  bool shut_down = bxr_runtime_has_shut_down();
  kept_for_marker = false;
  if (!shut_down && bxr_runtime_finish_marking())
    for (bxr_domain *d = &bxr_domains[bxr_runtime_domain()]; d != NULL; d = d->also) d->marking = false;
  kept_in_cycle = bxr_runtime_cycle();
  for (unsigned id = 0; id < BXR_MAX_DOMAINS; id++) {
    if (bxr_load_relaxed(&bxr_domains[id].head.state) == NULL) continue; /* never used */
    for (bxr_domain *d = &bxr_domains[id], *next; d != NULL; d = next) {
      next = d->also;
      if (shut_down || !bxr_runtime_marking_has_started() || d->runtime_cycle != kept_in_cycle) d->marking = false;
      kept_for_marker |= d->marking;
      dissolve_domain(d);
    }
  }
  dissolve_orphans();
  bxr_record_tear_down();
  bxr_quarantine_reset();
  bxr_account_reset();
}
