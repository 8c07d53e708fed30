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

static bxr_storage *storage_of(boxroot_storage s) { return (bxr_storage *)s; }

boxroot_storage boxroot_storage_create(char const *name)
{
  if (!bxr_api_is_ready()) return NULL;
  bxr_storage *s = bxr_storage_new(name, 0);
  if (s == NULL) bxr_api_fail_no_memory();
  return (boxroot_storage)s;
}

boxroot_domain boxroot_storage_here(boxroot_storage s)
{
  bxr_domain *d = bxr_api_record(storage_of(s));
  return d == NULL ? NULL : (boxroot_domain)((uintptr_t)d + BXR_HANDLE_TAG);
}

static boxroot storage_add(boxroot_storage s, value v)
{
  bxr_domain *d = bxr_api_record(storage_of(s));
  if (d == NULL) return NULL;
  bxr_pool *p = d->current;
  if (BXR_UNLIKELY(BOXROOT_DEBUG || p == NULL || p->head.free == BXR_FREE_END || !BXR_OCAML5 ||
                   bxr_runtime_is_shutting_down()))
    return bxr_api_create_in(d, v);
  uintptr_t *slot = bxr_pool_take(p);
  *slot = (uintptr_t)v;
  return (boxroot)slot;
}

static bool storage_clear(boxroot_storage s)
{
  if (!bxr_api_is_ready()) return false;
  bxr_storage_rename(storage_of(s));
  bxr_domain *d = bxr_load_relaxed(&storage_of(s)->records[bxr_runtime_domain()]);
  if (d != NULL) bxr_record_catch_up(d);
  return true;
}

static void storage_delete(boxroot_storage s)
{
  void *self = bxr_api_is_torn_down() ? NULL : bxr_runtime_self();
  bxr_domain *d = self == NULL ? NULL : bxr_load_relaxed(&storage_of(s)->records[bxr_runtime_domain()]);
  if (d != NULL && !bxr_domain_is(d, self)) d = NULL;
  bxr_storage_die(storage_of(s), d);
  if (d != NULL) bxr_record_end(d);
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

#if !BOXROOT_DEBUG
boxroot boxroot_storage_add(boxroot_storage s, value v) { return storage_add(s, v); }
bool boxroot_storage_clear(boxroot_storage s) { return storage_clear(s); }
void boxroot_storage_delete(boxroot_storage s) { storage_delete(s); }
#else
/* --- the checked build -------------------------------------------------------------------------------------------- */

static void check_storage(boxroot_storage s, char const *what, bxr_site here)
{
  char text[BXR_SITE_TEXT];
  if (s == NULL || bxr_load_acquire(&storage_of(s)->name) == 0)
    bxr_fault("%s: no storage, or one that was deleted: called with %p at %s", what, (void *)s,
              bxr_site_text(here, text));
}

/* The account of each root in s says that it was deleted, whatever domain made it. */
static void account_for(bxr_storage *s, bxr_site here)
{
  uint64_t name = bxr_load_acquire(&s->name);
  bool has_lock = !bxr_api_is_torn_down() && bxr_runtime_self() != NULL;
  bxr_domain *d = has_lock ? bxr_load_relaxed(&s->records[bxr_runtime_domain()]) : NULL;
  bxr_pool *p;
  for (int list = BXR_LIST_YOUNG_AVAIL; d != NULL && d->name == name && list < BXR_LISTS_OF_ROOTS; list++)
    if ((p = d->lists[list]) != NULL) do bxr_account_delete_all(p->slots, p->head.active, here);
    while ((p = p->next) != d->lists[list]);
  uint32_t mine = d != NULL ? 1 : 0;
  if (bxr_load_acquire(&s->domains) == mine && !bxr_orphans_exist(true)) return;
  for (uint64_t i = 0; bxr_depot_look(i, &p); i++)
    if (p != NULL && bxr_load_relaxed(&p->storage) == name) bxr_account_delete_all(p->slots, BXR_CAPACITY, here);
}

static boxroot checked_storage_add(boxroot_storage s, value v, bxr_site here)
{
  check_storage(s, "boxroot_storage_add", here);
  bxr_site outer = bxr_account_enter(here);
  boxroot r = storage_add(s, v);
  bxr_account_leave(outer);
  return r;
}

static bool checked_storage_clear(boxroot_storage s, bxr_site here)
{
  check_storage(s, "boxroot_storage_clear", here);
  if (!bxr_api_is_ready()) return false;
  account_for(storage_of(s), here);
  return storage_clear(s);
}

static void checked_storage_delete(boxroot_storage s, bxr_site here)
{
  check_storage(s, "boxroot_storage_delete", here);
  account_for(storage_of(s), here);
  storage_delete(s);
}

#define CALLER __builtin_return_address(0)
#define HERE ((bxr_site){ file, CALLER, line })
boxroot bxr_storage_add_at(boxroot_storage s, value v, char const *file, int line)
{
  return checked_storage_add(s, v, HERE);
}
bool bxr_storage_clear_at(boxroot_storage s, char const *file, int line) { return checked_storage_clear(s, HERE); }
void bxr_storage_delete_at(boxroot_storage s, char const *file, int line) { checked_storage_delete(s, HERE); }
#define UNKNOWN ((bxr_site){ NULL, CALLER, 0 })
boxroot boxroot_storage_add(boxroot_storage s, value v) { return checked_storage_add(s, v, UNKNOWN); }
bool boxroot_storage_clear(boxroot_storage s) { return checked_storage_clear(s, UNKNOWN); }
void boxroot_storage_delete(boxroot_storage s) { checked_storage_delete(s, UNKNOWN); }
#undef HERE
#undef UNKNOWN
#undef CALLER
#endif
