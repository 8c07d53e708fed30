/* SPDX-License-Identifier: MIT */
/* Storages (boxroot/storage.h): the public functions. records.h says how it is done. */
#ifndef BXR_DEFINES_FUNCTIONS
#define BXR_DEFINES_FUNCTIONS /* boxroot/config.h */
#endif
#include "api.h"
#include <boxroot/storage.h>
#include "checked/account.h"
#include "depot.h"
#include "orphans.h"
#include "records.h"
#include "status.h"

static bxr_storage *storage_of(boxroot_storage s) { return (bxr_storage *)s; }

boxroot_storage boxroot_storage_create(char const *name)
{
  if (!bxr_api_is_ready()) return NULL;
  bxr_storage *s = bxr_storage_new(name, 0);
  if (s == NULL) bxr_fail(BXR_FAIL_NO_MEMORY);
  return (boxroot_storage)s;
}

boxroot_domain boxroot_storage_here(boxroot_storage s)
{
  bxr_domain *d = bxr_api_record(storage_of(s));
  return d == NULL ? NULL : (boxroot_domain)((uintptr_t)d + BXR_HANDLE_TAG);
}

static size_t roots_of(bxr_domain *d)
{
  size_t n = 0;
  for (int list = BXR_LIST_YOUNG_AVAIL; list < BXR_LISTS_OF_ROOTS; list++) {
    bxr_pool *p = d->lists[list];
    if (p != NULL) do {
      if (bxr_domain_has_cleared(d, p)) continue;
      uint32_t free = BXR_CAPACITY - p->head.active;
      for (uintptr_t f = p->head.free; f != BXR_FREE_END; f = *(uintptr_t *)(f - 1)) free++;
      n += BXR_CAPACITY - free;
    } while ((p = p->next) != d->lists[list]);
  }
  return n;
}

/* Lists of other domains are not looked at: since OCaml 5.5 these may begin to mark, and change them, at any time. */
size_t boxroot_storage_count(boxroot_storage s)
{
  if (!bxr_api_is_ready()) return 0;
  bxr_domain *d = bxr_load_relaxed(&storage_of(s)->records[bxr_runtime_domain()]);
  if (d == NULL) return 0;
  bxr_record_catch_up(d);
  return roots_of(d);
}

char const *boxroot_storage_name(boxroot_storage s) { return storage_of(s)->text; }

/* --- the checked build -------------------------------------------------------------------------------------------- */

#if BOXROOT_DEBUG
static void check_storage(boxroot_storage s)
{
  char text[BXR_SITE_TEXT];
  if (s == NULL || bxr_load_acquire(&storage_of(s)->name) == 0)
    bxr_fault("%s: no storage, or one that was deleted: called with %p at %s", bxr_site_function(), (void *)s,
              bxr_site_here(text));
}

/* The account of each root in s says that it was deleted, whatever domain made it. */
static void account_for(bxr_storage *s)
{
  uint64_t name = bxr_load_acquire(&s->name);
  bool has_lock = !bxr_status_is_torn_down() && bxr_runtime_self() != NULL;
  bxr_domain *d = has_lock ? bxr_load_relaxed(&s->records[bxr_runtime_domain()]) : NULL;
  bxr_pool *p;
  for (int list = BXR_LIST_YOUNG_AVAIL; d != NULL && d->name == name && list < BXR_LISTS_OF_ROOTS; list++)
    if ((p = d->lists[list]) != NULL) do bxr_account_delete_all(p->slots, p->head.active);
    while ((p = p->next) != d->lists[list]);
  uint32_t mine = d != NULL ? 1 : 0;
  if (bxr_load_acquire(&s->domains) == mine && !bxr_orphans_exist(true)) return;
  for (uint64_t i = 0; bxr_depot_look(i, &p); i++)
    if (p != NULL && bxr_load_relaxed(&p->storage) == name) bxr_account_delete_all(p->slots, BXR_CAPACITY);
}
#else
static inline void check_storage(boxroot_storage s) { (void)s; }
static inline void account_for(bxr_storage *s) { (void)s; }
#endif

/* --- adding, clearing, deleting ----------------------------------------------------------------------------------- */

boxroot boxroot_storage_add(boxroot_storage s, value v)
{
  BXR_CALL;
  check_storage(s);
  bxr_domain *d = bxr_api_record(storage_of(s));
  if (d == NULL) return NULL;
  bxr_pool *p = (bxr_pool *)bxr_load_relaxed(&d->head.source);
  if (BXR_UNLIKELY(BOXROOT_DEBUG || p->head.free == BXR_FREE_END || !BXR_OCAML5 ||
                   bxr_runtime_is_shutting_down()))
    return bxr_api_create_in(d, v);
  uintptr_t *slot = bxr_pool_take(p);
  *slot = (uintptr_t)v;
  return (boxroot)slot;
}

bool boxroot_storage_clear(boxroot_storage s)
{
  BXR_CALL;
  check_storage(s);
  if (!bxr_api_is_ready()) return false;
  account_for(storage_of(s));
  bxr_storage_rename(storage_of(s));
  bxr_domain *d = bxr_load_relaxed(&storage_of(s)->records[bxr_runtime_domain()]);
  if (d != NULL) bxr_record_catch_up(d);
  return true;
}

void boxroot_storage_delete(boxroot_storage s)
{
  BXR_CALL;
  check_storage(s);
  account_for(storage_of(s));
  void *self = bxr_status_is_torn_down() ? NULL : bxr_runtime_self();
  bxr_domain *d = self == NULL ? NULL : bxr_load_relaxed(&storage_of(s)->records[bxr_runtime_domain()]);
  if (d != NULL && !bxr_domain_is(d, self)) d = NULL;
  bxr_storage_die(storage_of(s), d);
  if (d != NULL) bxr_record_end(d);
}
