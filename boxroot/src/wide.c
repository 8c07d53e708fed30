/* SPDX-License-Identifier: MIT */
/* Wide roots, and many roots at once (boxroot/wide.h): the public functions.

   The wide roots with n slots are the roots of a storage that nobody knows (records.h), whose pools give out n slots at
   a time (pool.h). So what is said of roots, pools and records holds for them, and nothing else had to learn of them
   but what takes slots from the free list and puts them back. */
#ifndef BXR_DEFINES_FUNCTIONS
#define BXR_DEFINES_FUNCTIONS /* boxroot/config.h */
#endif
#include "api.h"
#include <boxroot/wide.h>
#include "checked/account.h"
#include "delete.h"
#include "runtime.h"
#include "status.h"

_Static_assert(BOXROOT_WIDEST <= UINT8_MAX + 1 && BOXROOT_WIDEST <= BXR_CAPACITY &&
                 BOXROOT_WIDEST <= BXR_MOST_ACTIVATED_AT_ONCE,
               "a pool has slots for a wide root, which are put in use at once");

static boxroot_wide wide_create(size_t n, value const *vs)
{
  if (n >= 1 && n <= BOXROOT_WIDEST) return (boxroot_wide)bxr_api_create_wide((unsigned)n, vs);
  bxr_fail(BXR_FAIL_WIDTH);
  return NULL;
}

static bool wide_modify(boxroot_wide *w, size_t i, value v)
{
  boxroot r = (boxroot)*w;
  if (!bxr_api_modify_slot(&r, (unsigned)i, v)) return false;
  *w = (boxroot_wide)r;
  return true;
}

/* A root could not be made for rs[i]. The result is false. */
static bool undo_all(boxroot *rs, size_t i, size_t n)
{
  int reason = errno;
  for (size_t k = 0; k < n; k++) {
    if (k < i && bxr_account_delete(rs[k])) bxr_delete(rs[k]);
    rs[k] = NULL;
  }
  errno = reason;
  return false;
}

boxroot_wide boxroot_wide_create(size_t n, value const *vs) { BXR_CALL; return wide_create(n, vs); }

static void delete_one(boxroot r)
{
  if (bxr_account_delete(r)) bxr_delete(r);
}

void boxroot_wide_delete(boxroot_wide w) { BXR_CALL; delete_one((boxroot)w); }

#if !BOXROOT_DEBUG
#if !defined(__GNUC_GNU_INLINE__)
extern inline value boxroot_wide_get(boxroot_wide w, size_t i);
extern inline value const *boxroot_wide_ref(boxroot_wide w, size_t i);
extern inline bool boxroot_wide_modify(boxroot_wide *w, size_t i, value v);
#endif

bool bxr_wide_modify_slow(boxroot_wide *w, size_t i, value v) { return wide_modify(w, i, v); }

/* To find the handle costs what several creations cost. In a domain that has ended none can be had, but
   a root can. */
bool boxroot_create_all(size_t n, value const *vs, boxroot *rs)
{
  enum { MANY = 32 };
  boxroot_domain d = n >= MANY ? boxroot_domain_here() : NULL;
  for (size_t i = 0; i < n; i++) {
    rs[i] = d != NULL ? boxroot_create_in(d, vs[i]) : boxroot_create(vs[i]);
    if (BXR_UNLIKELY(rs[i] == NULL)) return undo_all(rs, i, n);
  }
  return true;
}

void boxroot_delete_all(size_t n, boxroot const *rs)
{
  for (size_t i = 0; i < n; i++)
    if (rs[i] != NULL) boxroot_delete(rs[i]);
}
#else
/* --- the checked build -------------------------------------------------------------------------------------------- */

static value const *checked_slot(boxroot_wide w, size_t i)
{
  char text[BXR_SITE_TEXT];
  boxroot r = (boxroot)w;
  if (!bxr_account_check(r)) return (value const *)r;
  unsigned wider = ((bxr_pool *)bxr_pool_of(r))->wider;
  if (i > wider)
    bxr_fault("%s: slot %zu of a wide root with %u: called at %s", bxr_site_function(), i, wider + 1,
              bxr_site_here(text));
  return (value const *)r + i;
}

value const *boxroot_wide_ref(boxroot_wide w, size_t i) { BXR_CALL; return checked_slot(w, i); }

value boxroot_wide_get(boxroot_wide w, size_t i)
{
  BXR_CALL;
  value const *v = checked_slot(w, i);
  bxr_api_check_use((boxroot)w);
  return *v;
}

bool boxroot_wide_modify(boxroot_wide *w, size_t i, value v)
{
  BXR_CALL;
  (void)checked_slot(*w, i);
  return wide_modify(w, i, v);
}

bool boxroot_create_all(size_t n, value const *vs, boxroot *rs)
{
  BXR_CALL;
  for (size_t i = 0; i < n; i++)
    if ((rs[i] = bxr_create_slow(vs[i])) == NULL) return undo_all(rs, i, n);
  return true;
}

void boxroot_delete_all(size_t n, boxroot const *rs)
{
  BXR_CALL;
  for (size_t i = 0; i < n; i++)
    if (rs[i] != NULL) delete_one(rs[i]);
}
#endif
