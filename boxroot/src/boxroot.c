/* SPDX-License-Identifier: MIT */
/* The public functions: set-up and teardown, errors, and the slow paths of the inline functions. */
#include "scan.h"
#include "chain.h"
#include "misuse.h"
#include "remote.h"
#include "succession.h"
#include "supply.h"
#include <errno.h>

enum { STARTING = 100 }; /* an internal status, between NOT_SETUP or TORE_DOWN and RUNNING */
static int library_status = BOXROOT_NOT_SETUP;

/* Why the last call of this thread failed. */
static BXR_THREAD_LOCAL enum { NO_FAILURE, NO_LOCK, NO_MEMORY, TORE_DOWN } failure BXR_TLS_MODEL;

#if BOXROOT_THREAD_UNSAFE
void *bxr_only_domain;
#endif

#if !BOXROOT_DEBUG /* else in misuse.c */
extern inline value boxroot_get(boxroot r);
extern inline value const *boxroot_get_ref(boxroot r);
extern inline boxroot boxroot_create(value v);
extern inline void boxroot_delete(boxroot r);
extern inline boxroot boxroot_create_in(boxroot_domain d, value v);
extern inline void boxroot_delete_in(boxroot_domain d, boxroot r);
extern inline bool boxroot_modify(boxroot *r, value v);
#endif

int boxroot_status(void)
{
  int s = bxr_load_acquire(&library_status);
  return s == STARTING ? BOXROOT_NOT_SETUP : s;
}

static bool fail(int reason)
{
  failure = reason;
  errno = reason == NO_MEMORY ? ENOMEM : EPERM;
  return false;
}

/* One thread installs the hooks; others that need them at this moment wait for it. It does not enter OCaml meanwhile. */
static bool start(void)
{
  for (;;) {
    int s = bxr_load_acquire(&library_status);
    if (s == BOXROOT_RUNNING) return true;
    if (s == STARTING) bxr_os_yield();
    else if (bxr_cas_seq_cst(&library_status, &s, STARTING)) {
      bxr_runtime_attach(&bxr_scan_callbacks);
      bxr_misuse_setup();
      bxr_store_release(&library_status, BOXROOT_RUNNING);
      return true;
    }
  }
}

/* Within the library no public function is called through its name where it matters which copy of the library it belongs to: another
   shared object may have lent its own for it. */
static bool set_up(void)
{
#if BOXROOT_THREAD_UNSAFE
  bxr_only_domain = Caml_state;
#endif
  bxr_runtime_check_lock();
  if (bxr_runtime_self() == NULL) return fail(NO_LOCK);
  return start();
}

bool boxroot_setup(void) { return set_up(); }

/* Whether create and modify may go on. */
static bool ready(void)
{
  int s = bxr_load_acquire(&library_status);
  if (BXR_LIKELY(s == BOXROOT_RUNNING)) {
    bxr_runtime_check_lock();
    return bxr_runtime_self() != NULL || fail(NO_LOCK);
  }
  return s == BOXROOT_TORE_DOWN ? fail(TORE_DOWN) : set_up();
}

/* Whether the current domain is past its end: it has given its pools up, and takes none any more. */
static bool is_past_its_end(void)
{
  return !bxr_is_domain_of(&bxr_domains[bxr_runtime_domain()], bxr_self()) && bxr_runtime_leaving();
}

/* A root of a domain that is past its end (a finaliser made it): in a pool of its own, handed over at once. */
static boxroot create_orphan(value v)
{
  bxr_pool *p = bxr_region_claim();
  if (p == NULL) return NULL;
  bxr_pool_activate(p, BXR_CAPACITY);
  uintptr_t *slot = bxr_pool_take(p);
  *slot = (uintptr_t)v;
  p->exact = false;
  p->place = BXR_PLACE_YOUNG_AVAIL;
  bxr_mark_live((boxroot)slot);
  bxr_orphan_pool(p);
  return (boxroot)slot;
}

boxroot bxr_create_slow(value v)
{
  if (!ready()) return NULL;
  boxroot r;
  if (is_past_its_end()) {
    r = create_orphan(v);
  } else {
    bxr_domain *d = bxr_domain_here();
    bxr_count(&d->count.create_slow, 1);
    if ((d->current == NULL || d->current->head.free == BXR_FREE_END) && !bxr_refill(d) &&
        !(bxr_quarantine_flush(bxr_remote_delete) && bxr_refill(d))) {
      fail(NO_MEMORY);
      return NULL;
    }
    bxr_cache = &d->current->head;
    r = (boxroot)bxr_pool_take(d->current);
    *(value *)r = v;
    bxr_mark_live(r);
  }
  if (r == NULL) fail(NO_MEMORY);
  return r;
}

boxroot_domain boxroot_domain_here(void)
{
  if (!ready()) return NULL;
  if (is_past_its_end()) {
    fail(NO_LOCK);
    return NULL;
  }
  return (boxroot_domain)bxr_domain_here();
}

/* Whether the current domain, which is `self`, may touch the pool's slots itself. `d`: the home of the pool. */
static bool is_keeper(bxr_domain *d, void *self) { return d != NULL && bxr_is_domain_of(d, self) && !d->scanning; }

static bxr_domain *home_of(bxr_pool *p) { return bxr_load_relaxed(&p->home); }

static void delete_elsewhere(boxroot r, void *self)
{
  if (self != NULL && !BOXROOT_FORCE_REMOTE) {
    bxr_domain *me = &bxr_domains[bxr_runtime_domain()];
    if (!bxr_is_domain_of(me, self) && !bxr_runtime_leaving()) me = bxr_domain_here();
    if (is_keeper(me, self)) {
      bxr_remote_delete_by(me, r);
      return;
    }
  }
  bxr_remote_delete(r);
}

static __attribute__((noinline)) void delete_slowly(boxroot r)
{
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  if (BXR_UNLIKELY(bxr_load_relaxed(&library_status) != BOXROOT_RUNNING)) {
    /* Void since teardown; or, as somebody is at home, made by another copy of the library in this process. */
    if (home_of(p) != NULL) bxr_remote_delete(r);
    return;
  }
  bxr_domain *d = home_of(p);
  void *self = bxr_runtime_self();
  if (BOXROOT_FORCE_REMOTE || self == NULL || !is_keeper(d, self)) {
    delete_elsewhere(r, self);
    return;
  }
  bxr_count(&d->count.delete_slow, 1);
  if (bxr_needs_barrier(d, p)) {
    bxr_remote_delete_by(d, r); /* the marker will read the slot */
    return;
  }
  if (bxr_quarantine(r, bxr_delete_slow)) return;
  bxr_pool_put(p, (uintptr_t *)r);
  bxr_domain_freed(d, p);
}

void bxr_delete_slow(boxroot r)
{
  void *self = bxr_runtime_self();
  if (!BOXROOT_FORCE_REMOTE && BXR_LIKELY(self != NULL)) {
    bxr_domain *me = &bxr_domains[bxr_runtime_domain()];
    if (BXR_LIKELY(bxr_is_domain_of(me, self)) && BXR_LIKELY(bxr_remote_delete_neighbour(me, r))) return;
  }
  delete_slowly(r);
}

bool bxr_modify_slow(boxroot *r, value v)
{
  if (!ready()) return false;
  bxr_pool *p = (bxr_pool *)bxr_pool_of(*r);
  bxr_domain *d = home_of(p);
  if (is_keeper(d, bxr_self())) {
    bxr_count(&d->count.modify_slow, 1);
    if ((bxr_pool_is_young(p) || !bxr_in_range(bxr_runtime_minor_range(), (uintptr_t)v)) && !bxr_belongs_to_past(d, p)) {
      if (bxr_needs_barrier(d, p)) bxr_barrier(d, *(uintptr_t *)*r);
      *(value *)*r = v;
      return true;
    }
  }
#if BOXROOT_DEBUG
  boxroot fresh = bxr_create_slow(v);
  if (fresh == NULL) return false;
  bxr_mark_moved(*r, fresh);
  bxr_delete_slow(*r);
#else
  boxroot fresh = boxroot_create(v);
  if (fresh == NULL) return false;
  boxroot_delete(*r);
#endif
  *r = fresh;
  return true;
}

void boxroot_teardown(void)
{
  int s = BOXROOT_RUNNING;
  while (!bxr_cas_seq_cst(&library_status, &s, BOXROOT_TORE_DOWN))
    if (s != BOXROOT_RUNNING) return;
  bxr_runtime_detach();
  bool over = bxr_runtime_over();
  if (!over && bxr_runtime_finish_marking()) bxr_domains[bxr_runtime_domain()].marking = false;
  for (unsigned id = 0; id < BXR_MAX_DOMAINS; id++) {
    bxr_domain *d = &bxr_domains[id];
    if (bxr_load_relaxed(&d->head.state) == NULL) continue; /* never used */
    if (over) d->marking = false;
    bxr_dissolve(d);
  }
  bxr_dissolve_orphans();
  bxr_misuse_teardown();
}

char const *boxroot_error_string(void)
{
  switch (failure) {
  case NO_LOCK: return "boxroot_create, boxroot_modify or boxroot_setup was called without holding the domain lock";
  case NO_MEMORY: return "no memory for more roots";
  case TORE_DOWN: return "boxroot_teardown has been called, and boxroot_setup has not been called since";
  default: return "no call of this thread has failed";
  }
}
