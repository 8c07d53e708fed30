/* SPDX-License-Identifier: MIT */
/* The functions of boxroot.h that are not inline, and the slow paths of those that are. Within the library no public
   function is called through its name where it matters which copy of the library it belongs to: another shared object
   may provide its own for it. */
#ifndef BXR_DEFINES_FUNCTIONS
#define BXR_DEFINES_FUNCTIONS /* boxroot/config.h */
#endif
#include "api.h"
#include "checked/account.h"
#include "depot.h"
#include "orphans.h"
#include "os.h"
#include "records.h"
#include "remote.h"
#include "scan.h"
#include "supply.h"
#include <inttypes.h>
#include <stdio.h>

/* These are for calls that the compiler does not inline; those of the checked build are in checked/checked.c. */
#if !BOXROOT_DEBUG && !defined(__GNUC_GNU_INLINE__)
extern inline value boxroot_get(boxroot r);
extern inline value const *boxroot_get_ref(boxroot r);
extern inline boxroot boxroot_create(value v);
extern inline void boxroot_delete(boxroot r);
extern inline boxroot boxroot_create_in(boxroot_domain d, value v);
extern inline void boxroot_delete_in(boxroot_domain d, boxroot r);
extern inline bool boxroot_modify(boxroot *r, value v);
#endif

/* --- the status of the library, and why a call failed ------------------------------------------------------------- */

enum { STARTING = 100 }; /* internal, between NOT_SETUP or TORE_DOWN and RUNNING */
static int library_status = BOXROOT_NOT_SETUP; /* (atomic) */

int boxroot_status(void)
{
  int s = bxr_load_acquire(&library_status);
  return s == STARTING ? BOXROOT_NOT_SETUP : s;
}

bool bxr_api_is_torn_down(void) { return bxr_load_acquire(&library_status) == BOXROOT_TORE_DOWN; }

typedef enum {
  NO_FAILURE, NO_LOCK, NO_MEMORY, TORE_DOWN, CLOSED, LAZY, NOT_FIRST, SHUT_DOWN, WIDTH, OTHER_COPY, OTHER_OCAML
} failure;
static BXR_THREAD_LOCAL failure last_failure BXR_TLS_MODEL;

/* Sets errno and what boxroot_error_string says to this thread. The result is false. */
static bool fail(failure reason)
{
  last_failure = reason;
  switch (reason) {
  case NO_MEMORY: errno = ENOMEM; break;
  case LAZY:
  case WIDTH: errno = EINVAL; break;
  case OTHER_OCAML:
  case NOT_FIRST: errno = ENOTSUP; break;
  default: errno = EPERM;
  }
  return false;
}

void bxr_api_fail_no_memory(void) { (void)fail(NO_MEMORY); }
void bxr_api_fail_closed(void) { (void)fail(CLOSED); }
void bxr_api_fail_width(void) { (void)fail(WIDTH); }

char const *boxroot_error_string(void)
{
  switch (last_failure) {
  case NO_LOCK:
    return "boxroot_create, boxroot_modify or boxroot_setup was called without holding the domain lock";
  case NO_MEMORY: return "no memory for more roots";
  case TORE_DOWN: return "boxroot_teardown has been called, and boxroot_setup has not been called since";
  case CLOSED: return "boxroot_local_create was called with a frame that is closed";
  case OTHER_COPY: return "a root in a storage of another copy of the library was to be modified";
  case OTHER_OCAML:
    return "the library was compiled for OCaml " OCAML_VERSION_STRING
           ", and is linked with the runtime of another version";
  case WIDTH: return "boxroot_wide_create was called for no slot, or for more than BOXROOT_WIDEST";
  case LAZY:
    return "boxroot_weak_create, or boxroot_ephemeral_create for a key, was called with a lazy value, which the "
           "collector may replace by its result";
  case NOT_FIRST:
#if !BXR_KNOWN_WEAK
    return "this version of OCaml is not among those that boxroot_weak_create and boxroot_ephemeral_create have been "
           "tested with";
#endif
    return "before OCaml 5.5, boxroot_weak_create and boxroot_ephemeral_create must be called on the first domain: the "
           "runtime loses the weak arrays and ephemerons of domains that end";
  case SHUT_DOWN:
    return "boxroot_weak_create or boxroot_ephemeral_create was called by a finaliser that OCaml's shutdown runs at "
           "its end";
  default: return "no call of this thread has failed";
  }
}

/* --- set-up, at the first use or on request ----------------------------------------------------------------------- */

/* One thread installs the hooks; others that need them at this moment wait for it. It does not run OCaml code
   meanwhile. */
static bool start_library(void)
{
  for (;;) {
    int s = bxr_load_acquire(&library_status);
    if (s == BOXROOT_RUNNING) return true;
    if (s == STARTING) bxr_thread_yield();
    else if (bxr_cas_seq_cst(&library_status, &s, STARTING)) {
      bxr_object_prepare();
      bxr_runtime_attach(&bxr_scan_callbacks);
      bxr_leaks_setup();
      bxr_store_release(&library_status, BOXROOT_RUNNING);
      return true;
    }
  }
}

static bool set_up(void)
{
  if (!bxr_runtime_is_ours()) return fail(OTHER_OCAML);
#if BOXROOT_THREAD_UNSAFE
  bxr_only_domain = Caml_state;
#endif
  bxr_runtime_check_lock();
  if (bxr_runtime_self() == NULL) return fail(NO_LOCK);
  return start_library();
}

bool boxroot_setup(void) { return set_up(); }

/* Whether create and modify may go on: the library is set up, now if need be, and this thread holds a domain lock. If
   not, errno and the reason are set. */
static bool is_ready(void)
{
  int s = bxr_load_acquire(&library_status);
  if (BXR_LIKELY(s == BOXROOT_RUNNING)) {
    bxr_runtime_check_lock();
    return bxr_runtime_self() != NULL || fail(NO_LOCK);
  }
  return s == BOXROOT_TORE_DOWN ? fail(TORE_DOWN) : set_up();
}

bool bxr_api_is_ready(void) { return is_ready(); }

bool bxr_api_may_hold_weakly(value v)
{
  if (!is_ready()) return false;
  if (BXR_UNLIKELY(bxr_runtime_is_lazy(v))) return fail(LAZY);
  if (BXR_UNLIKELY(!bxr_runtime_keeps_weak_arrays())) return fail(NOT_FIRST);
  return !BXR_UNLIKELY(bxr_runtime_weak_arrays_are_over()) || fail(SHUT_DOWN);
}

/* --- creation ----------------------------------------------------------------------------------------------------- */

/* Whether the current domain has ended: its pools are orphaned, and it takes no others. Needs the domain lock. */
static bool has_ended(void)
{
  return !bxr_domain_is(&bxr_domains[bxr_runtime_domain()], bxr_self()) && bxr_runtime_is_terminating();
}

/* Creates a root of a domain that has ended (a finaliser makes it), in a pool of its own, which is orphaned at once. */
static boxroot create_orphan(value v)
{
  bxr_pool *p = bxr_depot_claim();
  if (p == NULL) return NULL;
  bxr_pool_activate(p, BXR_CAPACITY);
  uintptr_t *slot = bxr_pool_take(p);
  *slot = (uintptr_t)v;
  p->freed_is_exact = false;
  p->list = BXR_LIST_YOUNG_AVAIL;
  bxr_account_create((boxroot)slot);
  bxr_orphans_add_pool(p);
  return (boxroot)slot;
}

/* The slots of a new root in d. NULL: no memory. */
static uintptr_t *take_slots(bxr_domain *d)
{
  bxr_count(&d->count.create_slow, 1);
  if ((d->current == NULL || d->current->head.free == BXR_FREE_END) && !bxr_supply_refill(d) &&
      !(bxr_quarantine_flush(bxr_remote_delete) && bxr_supply_refill(d))) {
    fail(NO_MEMORY);
    return NULL;
  }
  if (d->storage == NULL) bxr_domain_offer(d);
  else if (d->head.source != &d->current->head) bxr_domain_set_current(d, d->current);
  return bxr_pool_take(d->current);
}

static boxroot made(bxr_domain *d, uintptr_t *slots)
{
  bxr_account_create((boxroot)slots);
  if (BXR_UNLIKELY(bxr_runtime_is_shutting_down())) bxr_supply_retire(d);
  return (boxroot)slots;
}

boxroot bxr_api_create_in(bxr_domain *d, value v)
{
  uintptr_t *slot = take_slots(d);
  if (slot == NULL) return NULL;
  *slot = (uintptr_t)v;
  return made(d, slot);
}

/* The slots of a new root of s, where that takes no more than a look; otherwise NULL. A record of a domain that has
   ended is not found, nor any after a teardown. */
static uintptr_t *take_at_once(bxr_storage *s)
{
  if (!BXR_OCAML5 || BOXROOT_DEBUG || s == NULL) return NULL;
  void *self = bxr_runtime_self();
  if (self == NULL || BXR_UNLIKELY(bxr_runtime_is_shutting_down())) return NULL;
  bxr_domain *d = bxr_load_relaxed(&s->records[bxr_runtime_domain()]);
  if (d == NULL || !bxr_domain_is(d, self) || d->current == NULL || d->current->head.free == BXR_FREE_END) return NULL;
  return bxr_pool_take(d->current);
}

boxroot bxr_api_create_wide(unsigned n, value const *values)
{
  uintptr_t *at_once = take_at_once(bxr_storage_wide_if_there((uint8_t)(n - 1)));
  if (BXR_LIKELY(at_once != NULL)) {
    for (unsigned i = 0; i < n; i++) at_once[i] = (uintptr_t)values[i];
    return (boxroot)at_once;
  }
  if (!is_ready()) return NULL;
  bxr_storage *s = bxr_storage_wide((uint8_t)(n - 1));
  if (s == NULL) {
    fail(NO_MEMORY);
    return NULL;
  }
  bxr_domain *d = bxr_api_record(s);
  uintptr_t *slots = d == NULL ? NULL : take_slots(d);
  if (slots == NULL) return NULL;
  for (unsigned i = 0; i < n; i++) slots[i] = (uintptr_t)values[i];
  return made(d, slots);
}

boxroot bxr_create_slow(value v)
{
  if (!is_ready()) return NULL;
  if (BXR_LIKELY(!has_ended())) return bxr_api_create_in(bxr_domain_here(), v);
  boxroot r = create_orphan(v);
  if (r == NULL) fail(NO_MEMORY);
  return r;
}

bxr_domain *bxr_api_record(bxr_storage *s)
{
  if (!is_ready()) return NULL;
  bxr_domain *d = NULL;
  if (has_ended()) fail(NO_LOCK);
  else if ((d = bxr_record_here(s)) == NULL) fail(NO_MEMORY);
  return d;
}

boxroot bxr_create_in_slow(boxroot_domain handle, value v)
{
  bxr_domain *d = (bxr_domain *)((uintptr_t)handle - BXR_HANDLE_TAG);
  if (BXR_OCAML5 && d->storage == NULL) return bxr_create_slow(v);
  if (!is_ready()) return NULL;
  if (!bxr_domain_is(d, bxr_self())) {
    fail(NO_LOCK); /* the domain has ended, or the storage was deleted */
    return NULL;
  }
  d = bxr_record_here(d->storage);
  if (d != NULL) return bxr_api_create_in(d, v);
  fail(NO_MEMORY);
  return NULL;
}

boxroot_domain boxroot_domain_here(void)
{
  if (!is_ready()) return NULL;
  if (has_ended()) {
    fail(NO_LOCK);
    return NULL;
  }
  return (boxroot_domain)bxr_domain_here();
}

/* --- deletion and modification ------------------------------------------------------------------------------------ */

/* Whether the current domain, which is `self`, may touch the slots of a pool itself. d is the home of the pool. */
static bool may_touch(bxr_domain *d, void *self) { return d != NULL && bxr_domain_is(d, self) && !d->scanning; }

static bxr_domain *home_of(bxr_pool *p) { return bxr_load_relaxed(&p->home); }

static void delete_remotely(boxroot r, void *self)
{
  if (self != NULL && !BOXROOT_FORCE_REMOTE) {
    bxr_domain *me = &bxr_domains[bxr_runtime_domain()];
    if (!bxr_domain_is(me, self) && !bxr_runtime_is_terminating()) me = bxr_domain_here();
    if (may_touch(me, self)) {
      bxr_remote_delete_batched(me, r);
      return;
    }
  }
  bxr_remote_delete(r);
}

static __attribute__((noinline)) void delete_slowly(boxroot r)
{
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  if (BXR_UNLIKELY(bxr_load_relaxed(&library_status) != BOXROOT_RUNNING)) {
    /* The root was torn down; or, if the pool has a home, another copy of the library in this process made it. */
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
    bxr_remote_delete_batched(d, r); /* the marker will read the slot */
    return;
  }
  bxr_quarantine_empty((uintptr_t *)r + 1, p->wider);
  if (bxr_quarantine_put(r, bxr_delete_slow)) return;
  if (BXR_UNLIKELY(bxr_domain_has_cleared(d, p))) return; /* it comes out of quarantine */
  bxr_pool_put(p, (uintptr_t *)r);
  bxr_list_after_free(d, p);
}

static __attribute__((noinline)) void delete_in_batch(boxroot r)
{
  void *self = bxr_runtime_self();
  if (!BOXROOT_FORCE_REMOTE && BXR_LIKELY(self != NULL)) {
    bxr_domain *me = &bxr_domains[bxr_runtime_domain()];
    if (BXR_LIKELY(bxr_domain_is(me, self)) && BXR_LIKELY(bxr_remote_delete_in_batch(me, r))) return;
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

/* The usual case comes first: a root of this domain, whose deletion waits for the marker, beside the last one. */
void bxr_delete_slow(boxroot r)
{
  bxr_domain *d = home_of((bxr_pool *)bxr_pool_of(r));
  if (BXR_OCAML5 && !BOXROOT_FORCE_REMOTE && BXR_LIKELY(d != NULL) && BXR_LIKELY(is_here(d)) &&
      BXR_LIKELY(bxr_remote_delete_in_batch(d, r)))
    return;
  delete_in_batch(r);
}

void bxr_api_delete(boxroot r)
{
#if !BOXROOT_DEBUG && !BOXROOT_FORCE_REMOTE
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  if (BXR_LIKELY(bxr_load_relaxed(&p->head.free_owner) == bxr_self())) {
    bxr_pool_put(p, (uintptr_t *)r);
    return;
  }
#endif
  bxr_delete_slow(r);
}

/* A root for v in the storage of p, which has a live one. The pool of another copy of the library may be in a storage
   of that: names of storages mean nothing here, then. */
static boxroot create_beside(bxr_pool *p, value v)
{
  if (BXR_UNLIKELY(p->storage != 0) && !bxr_depot_has(p)) {
    fail(OTHER_COPY);
    return NULL;
  }
  bxr_domain *home = p->storage == 0 ? NULL : home_of(p);
  bxr_storage *s = home == NULL ? NULL : bxr_load_relaxed(&home->storage);
  if (s == NULL || bxr_load_acquire(&s->name) != p->storage) s = bxr_storage_find(p->storage); /* its domain ended */
  if (BXR_LIKELY(s == NULL)) {
#if BOXROOT_DEBUG
    return bxr_create_slow(v);
#else
    return boxroot_create(v);
#endif
  }
  bxr_domain *d = bxr_api_record(s);
  return d == NULL ? NULL : bxr_api_create_in(d, v);
}

/* A root for the values of r but for that of slot i, which is v. */
static boxroot create_with(boxroot r, unsigned i, value v)
{
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  if (p->wider == 0) return create_beside(p, v);
  value values[UINT8_MAX + 1];
  for (unsigned k = 0; k <= p->wider; k++) values[k] = ((value *)r)[k];
  values[i] = v;
  return bxr_api_create_wide(p->wider + 1u, values);
}

bool bxr_api_modify_slot(boxroot *r, unsigned i, value v)
{
  if (!is_ready()) return false;
  bxr_pool *p = (bxr_pool *)bxr_pool_of(*r);
  bxr_domain *d = home_of(p);
  if (may_touch(d, bxr_self())) {
    bxr_count(&d->count.modify_slow, 1);
    if ((bxr_pool_is_young(p) || !bxr_runtime_in_minor_range(bxr_runtime_minor_range(), (uintptr_t)v)) &&
        !bxr_barrier_other_marker(d, p)) {
      if (bxr_barrier_needed(d, p)) bxr_barrier_darken(d, ((uintptr_t *)*r)[i]);
      ((value *)*r)[i] = v;
      return true;
    }
  }
  boxroot fresh = create_with(*r, i, v);
  if (fresh == NULL) return false;
  if (BOXROOT_DEBUG) bxr_account_move(*r, fresh);
  bxr_api_delete(*r);
  *r = fresh;
  return true;
}

bool bxr_modify_slow(boxroot *r, value v) { return bxr_api_modify_slot(r, 0, v); }

/* --- teardown: the memory of all roots is returned, but for what a marker may still read -------------------------- */

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
  if (!read && bxr_api_is_torn_down() && bxr_object_is_unloading()) {
    bxr_depot_release();
    bxr_storage_release_all();
    bxr_account_release();
  }
}

__attribute__((destructor(101))) static void when_unloaded(void)
{
  void (*release)(void) = release_when_unloaded;
  if (release != NULL) release();
}

static void (*first_at_teardown)(void); /* (atomic) */
void bxr_api_at_teardown(void (*f)(void)) { bxr_store_relaxed(&first_at_teardown, f); }

void boxroot_teardown(void)
{
  for (int s = BOXROOT_RUNNING; !bxr_cas_seq_cst(&library_status, &s, BOXROOT_TORE_DOWN);)
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

/* --- counters ----------------------------------------------------------------------------------------------------- */

static void add_counters(boxroot_statistics *out, bxr_counters *c)
{
#define SUM(field, meaning) out->field += bxr_load_relaxed(&c->field);
  BOXROOT_COUNTERS(SUM)
#undef SUM
}

void boxroot_get_stats(boxroot_statistics *out)
{
  *out = (boxroot_statistics){ .pool_bytes = BXR_POOL_SIZE,
                               .pool_capacity = BXR_CAPACITY,
                               .bytes_reserved = bxr_depot_reserved_bytes() };
  for (unsigned id = 0; id < BXR_MAX_DOMAINS; id++) add_counters(out, &bxr_domains[id].count);
  for (bxr_domain *d = bxr_record_all(); d != NULL; d = d->next) add_counters(out, &d->count);
  out->pools_in_use += bxr_orphans_count();
}

void boxroot_print_stats(void)
{
  boxroot_statistics s;
  boxroot_get_stats(&s);
#if BOXROOT_CONSERVATIVE
  printf("boxroot: conservative with OCaml %s%s: all roots are visited at the start of each major cycle, while the "
         "program waits\n",
         OCAML_VERSION_STRING, BXR_KNOWN_RUNTIME ? "" : ", which it was not tested with");
#endif
  printf("boxroot: pools of %" PRIu64 " KiB, %" PRIu64 " roots each\n", s.pool_bytes / 1024, s.pool_capacity);
  printf("  pools in use: %" PRIu64 " (peak %" PRIu64 ", times purged %" PRIu64 "), address space: %" PRIu64 " MiB\n",
         s.pools_in_use, s.pools_peak, s.pools_purged, s.bytes_reserved >> 20);
  printf("  roots at the start of the last major cycle: at most %" PRIu64 "\n", s.roots_last_cycle);
  printf("  slow paths: create %" PRIu64 ", delete %" PRIu64 ", modify %" PRIu64 "; remote deletions: %" PRIu64 "\n",
         s.create_slow, s.delete_slow, s.modify_slow, s.delete_remote);
  printf("  minor scans: %" PRIu64 " (%.0f slots each), major cycles: %" PRIu64 ", other scans: %" PRIu64 "\n",
         s.minor_scans, s.minor_scans == 0 ? 0. : (double)s.minor_slots / (double)s.minor_scans, s.major_starts,
         s.other_scans);
  printf("  values darkened by modifications: %" PRIu64 ", pools marked by the library: %" PRIu64
         ", pools adopted: %" PRIu64 "\n",
         s.barrier, s.darkened_pools, s.pools_adopted);
}
