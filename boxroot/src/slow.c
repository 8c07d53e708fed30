/* SPDX-License-Identifier: MIT */
#ifndef BXR_DEFINES_FUNCTIONS
#define BXR_DEFINES_FUNCTIONS /* boxroot/config.h */
#endif
#include "slow.h"
#include "account.h"
#include "barrier.h"
#include "depot.h"
#include "fold.h"
#include "orphans.h"
#include "place.h"
#include "quarantine.h"
#include "remote.h"
#include "setup.h"
#include "status.h"
#include "supply.h"

/* Where the compiler does not inline them; the checked build's are in checked.c. */
#if !BOXROOT_DEBUG && !defined(__GNUC_GNU_INLINE__)
extern inline value boxroot_get(boxroot r);
extern inline value const *boxroot_get_ref(boxroot r);
extern inline boxroot boxroot_create(value v);
extern inline void boxroot_delete(boxroot r);
extern inline boxroot boxroot_create_in(boxroot_domain d, value v);
extern inline void boxroot_delete_in(boxroot_domain d, boxroot r);
extern inline bool boxroot_modify(boxroot *r, value v);
#endif

/* Whether the current domain has ended: its pools are orphaned, and it takes no others. */
static bool has_ended(void)
{
  return !bxr_domain_is(&bxr_domains[bxr_runtime_domain()], bxr_self()) && bxr_runtime_is_terminating();
}

/* A root of a domain that has ended (a finaliser made it): in a pool of its own, which is orphaned at once. */
static boxroot create_orphan(value v)
{
  bxr_pool *p = bxr_depot_claim();
  if (p == NULL) return NULL;
  bxr_pool_activate(p, BXR_CAPACITY);
  uintptr_t *slot = bxr_pool_take(p);
  *slot = (uintptr_t)v;
  p->exact = false;
  p->place = BXR_PLACE_YOUNG_AVAIL;
  bxr_account_create((boxroot)slot);
  bxr_orphans_add_pool(p);
  return (boxroot)slot;
}

boxroot bxr_create_slow(value v)
{
  if (!bxr_setup_ready()) return NULL;
  boxroot r;
  if (has_ended()) {
    r = create_orphan(v);
  } else {
    bxr_domain *d = bxr_domain_here();
    bxr_count(&d->count.create_slow, 1);
    if ((d->current == NULL || d->current->head.free == BXR_FREE_END) && !bxr_supply_refill(d) &&
        !(bxr_quarantine_flush(bxr_remote_delete) && bxr_supply_refill(d))) {
      bxr_status_fail(BXR_STATUS_NO_MEMORY);
      return NULL;
    }
    bxr_domain_offer(d);
    r = (boxroot)bxr_pool_take(d->current);
    *(value *)r = v;
    bxr_account_create(r);
    if (BXR_UNLIKELY(bxr_runtime_is_shutting_down())) bxr_supply_retire(d);
  }
  if (r == NULL) bxr_status_fail(BXR_STATUS_NO_MEMORY);
  return r;
}

boxroot_domain boxroot_domain_here(void)
{
  if (!bxr_setup_ready()) return NULL;
  if (has_ended()) {
    bxr_status_fail(BXR_STATUS_NO_LOCK);
    return NULL;
  }
  return (boxroot_domain)bxr_domain_here();
}

/* Whether the current domain, which is `self`, may touch the pool's slots itself. `d`: the home of the pool. */
static bool may_touch(bxr_domain *d, void *self) { return d != NULL && bxr_domain_is(d, self) && !d->scanning; }

static bxr_domain *home_of(bxr_pool *p) { return bxr_load_relaxed(&p->home); }

static void delete_remotely(boxroot r, void *self)
{
  if (self != NULL && !BOXROOT_FORCE_REMOTE) {
    bxr_domain *me = &bxr_domains[bxr_runtime_domain()];
    if (!bxr_domain_is(me, self) && !bxr_runtime_is_terminating()) me = bxr_domain_here();
    if (may_touch(me, self)) {
      bxr_remote_delete_by(me, r);
      return;
    }
  }
  bxr_remote_delete(r);
}

static __attribute__((noinline)) void delete_slowly(boxroot r)
{
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  if (BXR_UNLIKELY(bxr_load_relaxed(&bxr_status_word) != BOXROOT_RUNNING)) {
    /* Torn down; or, if the pool has a home, made by another copy of the library in this process. */
    if (home_of(p) != NULL) bxr_remote_delete(r);
    return;
  }
  bxr_domain *d = home_of(p);
  void *self = bxr_runtime_self();
  if (BOXROOT_FORCE_REMOTE || self == NULL || !may_touch(d, self)) {
    delete_remotely(r, self);
    return;
  }
  bxr_count(&d->count.delete_slow, 1);
  if (bxr_barrier_needed(d, p)) {
    bxr_remote_delete_by(d, r); /* the marker will read the slot */
    return;
  }
  if (bxr_quarantine_put(r, bxr_delete_slow)) return;
  bxr_pool_put(p, (uintptr_t *)r);
  bxr_place_freed(d, p);
}

static __attribute__((noinline)) void delete_beside_neighbour(boxroot r)
{
  void *self = bxr_runtime_self();
  if (!BOXROOT_FORCE_REMOTE && BXR_LIKELY(self != NULL)) {
    bxr_domain *me = &bxr_domains[bxr_runtime_domain()];
    if (BXR_LIKELY(bxr_domain_is(me, self)) && BXR_LIKELY(bxr_remote_delete_neighbour(me, r))) return;
  }
  delete_slowly(r);
}

/* Whether this thread has the lock of d, as the inline paths judge it. Nothing of the runtime is read, so it does not
   matter whether OCaml has shut down. */
static inline bool is_here(bxr_domain *d)
{
  return bxr_domain_is(d, bxr_self()) && BXR_LIKELY(d->strays == BXR_RUNTIME_NO_STRAYS) &&
         BXR_LIKELY(!bxr_runtime_self_may_be_stale());
}

/* The usual case first: a root of this domain, whose deletion waits for the marker, beside the last one. */
void bxr_delete_slow(boxroot r)
{
  bxr_domain *d = home_of((bxr_pool *)bxr_pool_of(r));
  if (BXR_OCAML5 && !BOXROOT_FORCE_REMOTE && BXR_LIKELY(d != NULL) && BXR_LIKELY(is_here(d)) &&
      BXR_LIKELY(bxr_remote_delete_neighbour(d, r)))
    return;
  delete_beside_neighbour(r);
}

bool bxr_modify_slow(boxroot *r, value v)
{
  if (!bxr_setup_ready()) return false;
  bxr_pool *p = (bxr_pool *)bxr_pool_of(*r);
  bxr_domain *d = home_of(p);
  if (may_touch(d, bxr_self())) {
    bxr_count(&d->count.modify_slow, 1);
    if ((bxr_pool_is_young(p) || !bxr_runtime_in_minor_range(bxr_runtime_minor_range(), (uintptr_t)v)) &&
        !bxr_barrier_other_marker(d, p)) {
      if (bxr_barrier_needed(d, p)) bxr_barrier_darken(d, *(uintptr_t *)*r);
      *(value *)*r = v;
      return true;
    }
  }
#if BOXROOT_DEBUG
  boxroot fresh = bxr_create_slow(v);
  if (fresh == NULL) return false;
  bxr_account_move(*r, fresh);
  bxr_delete_slow(*r);
#else
  boxroot fresh = boxroot_create(v);
  if (fresh == NULL) return false;
  boxroot_delete(*r);
#endif
  *r = fresh;
  return true;
}
