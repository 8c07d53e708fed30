/* SPDX-License-Identifier: MIT */
/* The functions of boxroot.h that are not inline, and the slow paths of those that are. Within the library no public
   function is called through its name where it matters which copy of the library it belongs to: another shared object
   may provide its own for it. */
#ifndef BXR_DEFINES_FUNCTIONS
#define BXR_DEFINES_FUNCTIONS /* boxroot/config.h */
#endif
#include "api.h"
#include "checked/account.h"
#include "delete.h"
#include "depot.h"
#include "orphans.h"
#include "os.h"
#include "records.h"
#include "report.h"
#include "sample.h"
#include "scan.h"
#include "status.h"
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

/* --- set-up, at the first use or on request ----------------------------------------------------------------------- */

/* One thread installs the hooks; others that need them at this moment wait for it. It does not run OCaml code
   meanwhile. */
static bool start_library(void)
{
  for (;;) {
    int s = bxr_load_acquire(&bxr_status);
    if (s == BOXROOT_RUNNING) return true;
    if (s == BXR_STATUS_STARTING) bxr_thread_yield();
    else if (bxr_cas_seq_cst(&bxr_status, &s, BXR_STATUS_STARTING)) {
      bxr_object_prepare();
      bxr_runtime_attach(&bxr_scan_callbacks);
      bxr_leaks_setup();
      bxr_report_setup();
      bxr_store_release(&bxr_status, BOXROOT_RUNNING);
      return true;
    }
  }
}

static bool set_up(void)
{
  if (!bxr_runtime_is_ours()) return bxr_fail(BXR_FAIL_OTHER_OCAML);
#if BOXROOT_THREAD_UNSAFE
  bxr_only_domain = Caml_state;
#endif
  bxr_runtime_check_lock();
  if (bxr_runtime_self() == NULL) return bxr_fail(BXR_FAIL_NO_LOCK);
  return start_library();
}

bool boxroot_setup(void) { return set_up(); }

/* Whether create and modify may go on: the library is set up, now if need be, and this thread holds a domain lock. If
   not, errno and the reason are set. */
static bool is_ready(void)
{
  int s = bxr_load_acquire(&bxr_status);
  if (BXR_LIKELY(s == BOXROOT_RUNNING)) {
    bxr_runtime_check_lock();
    return bxr_runtime_self() != NULL || bxr_fail(BXR_FAIL_NO_LOCK);
  }
  return s == BOXROOT_TORE_DOWN ? bxr_fail(BXR_FAIL_TORE_DOWN) : set_up();
}

bool bxr_api_is_ready(void) { return is_ready(); }

#if BOXROOT_DEBUG
void bxr_api_check_use(boxroot r)
{
  if (!bxr_account_check(r)) return;
  bxr_runtime_check_lock();
  if (bxr_runtime_self() == NULL) bxr_account_fault_no_lock(r);
}
#endif

bool bxr_api_may_hold_weakly(value v)
{
  if (!is_ready()) return false;
  if (BXR_UNLIKELY(bxr_runtime_is_lazy(v))) return bxr_fail(BXR_FAIL_LAZY);
  if (BXR_UNLIKELY(!bxr_runtime_keeps_weak_arrays())) return bxr_fail(BXR_FAIL_NOT_FIRST);
  return !BXR_UNLIKELY(bxr_runtime_weak_arrays_are_over()) || bxr_fail(BXR_FAIL_SHUT_DOWN);
}

/* --- creation ----------------------------------------------------------------------------------------------------- */

/* Whether the current domain has ended: its pools are orphaned, and it takes no others. Needs the domain lock. */
static bool has_ended(void)
{
  BXR_ASSERT_LOCK();
  return !bxr_domain_is(&bxr_domains[bxr_runtime_domain()], bxr_self()) && bxr_runtime_is_terminating();
}

/* Creates a root of a domain that has ended (a finaliser makes it), in a pool of its own, which is orphaned at once. */
static boxroot create_orphan(value v)
{
  bxr_pool *p = bxr_depot_claim();
  if (p == NULL) return NULL;
  (void)bxr_pool_has_room(p, BXR_NO_BARRIER);
  uintptr_t *slot = bxr_pool_take(p);
  *slot = (uintptr_t)v;
  p->freed_is_exact = false;
  p->list = BXR_LIST_YOUNG_AVAIL;
  bxr_account_create((boxroot)slot);
  if (BXR_UNLIKELY(bxr_load_relaxed(&bxr_domain_all_slow))) bxr_sample_note(&bxr_domains[bxr_runtime_domain()], slot);
  bxr_orphans_add_pool(p);
  return (boxroot)slot;
}

/* The slots of a new root in d. NULL: no memory. */
static uintptr_t *take_slots(bxr_domain *d)
{
  BXR_ASSERT_OWNER(d);
  bxr_count(&d->count.create_slow, 1);
  while (d->current == NULL || d->current->head.free == BXR_FREE_END) {
    if (!bxr_supply_refill(d) && !(bxr_quarantine_flush(bxr_remote_delete) && bxr_supply_refill(d))) {
      bxr_fail(BXR_FAIL_NO_MEMORY);
      return NULL;
    }
    if (BXR_UNLIKELY(bxr_load_relaxed(&bxr_census_cap) != 0)) bxr_census_look(); /* may make roots */
  }
  if (BXR_UNLIKELY(bxr_load_relaxed(&bxr_domain_all_slow))) bxr_domain_close(d);
  if (d->storage == NULL) bxr_domain_offer(d);
  else if (d->head.source != &d->current->head) bxr_domain_set_current(d, d->current);
  return bxr_pool_take(d->current);
}

static boxroot made(bxr_domain *d, uintptr_t *slots)
{
  bxr_account_create((boxroot)slots);
  if (BXR_UNLIKELY(bxr_load_relaxed(&bxr_domain_all_slow))) bxr_sample_note(d, slots);
  if (BXR_UNLIKELY(bxr_runtime_is_shutting_down())) bxr_domain_retire(d, bxr_domain_barrier(d));
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
  if (d == NULL || !bxr_domain_is(d, self)) return NULL;
  bxr_pool *p = (bxr_pool *)bxr_load_relaxed(&d->head.source);
  return p->head.free == BXR_FREE_END ? NULL : bxr_pool_take(p);
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
    bxr_fail(BXR_FAIL_NO_MEMORY);
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
  if (r == NULL) bxr_fail(BXR_FAIL_NO_MEMORY);
  return r;
}

bxr_domain *bxr_api_record(bxr_storage *s)
{
  if (!is_ready()) return NULL;
  bxr_domain *d = NULL;
  if (has_ended()) bxr_fail(BXR_FAIL_NO_LOCK);
  else if ((d = bxr_record_here(s)) == NULL) bxr_fail(BXR_FAIL_NO_MEMORY);
  return d;
}

boxroot bxr_create_in_slow(boxroot_domain handle, value v)
{
  bxr_domain *d = (bxr_domain *)((uintptr_t)handle - BXR_HANDLE_TAG);
  if (BXR_OCAML5 && d->storage == NULL) return bxr_create_slow(v);
  if (!is_ready()) return NULL;
  if (!bxr_domain_is(d, bxr_self())) {
    bxr_fail(BXR_FAIL_NO_LOCK); /* the domain has ended, or the storage was deleted */
    return NULL;
  }
  d = bxr_record_here(d->storage);
  if (d != NULL) return bxr_api_create_in(d, v);
  bxr_fail(BXR_FAIL_NO_MEMORY);
  return NULL;
}

boxroot_domain boxroot_domain_here(void)
{
  if (!is_ready()) return NULL;
  if (has_ended()) {
    bxr_fail(BXR_FAIL_NO_LOCK);
    return NULL;
  }
  return (boxroot_domain)bxr_domain_here();
}

/* --- modification ------------------------------------------------------------------------------------------------- */

/* A root for v in the storage of p, which has a live one. The pool of another copy of the library may be in a storage
   of that: names of storages mean nothing here, then. */
static boxroot create_beside(bxr_pool *p, value v)
{
  if (BXR_UNLIKELY(p->storage != 0) && !bxr_depot_has(p)) {
    bxr_fail(BXR_FAIL_OTHER_COPY);
    return NULL;
  }
  bxr_domain *home = p->storage == 0 ? NULL : bxr_domain_of(p);
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
  bxr_domain *d = bxr_domain_of(p);
  if (bxr_domain_may_touch(d, bxr_self())) {
    bxr_count(&d->count.modify_slow, 1);
    bool stays = bxr_list_is_young(p->list) || !bxr_runtime_in_minor_range(bxr_runtime_minor_range(), (uintptr_t)v);
    bxr_barrier b = stays ? bxr_domain_barrier(d) : BXR_NO_BARRIER;
    if (stays && !bxr_pool_others(p, b)) {
      if (bxr_pool_guarded(p, b)) bxr_domain_darken(d, ((uintptr_t *)*r)[i]);
      ((value *)*r)[i] = v;
      return true;
    }
  }
  boxroot fresh = create_with(*r, i, v);
  if (fresh == NULL) return false;
  if (BOXROOT_DEBUG) bxr_account_move(*r, fresh);
  if (BXR_UNLIKELY(bxr_load_relaxed(&bxr_domain_all_slow))) bxr_sample_move(*r, fresh);
  bxr_delete(*r);
  *r = fresh;
  return true;
}

bool bxr_modify_slow(boxroot *r, value v) { return bxr_api_modify_slot(r, 0, v); }

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
