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
#include "runtime.h"

_Static_assert(BOXROOT_WIDEST <= UINT8_MAX + 1 && BOXROOT_WIDEST <= BXR_CAPACITY &&
                 BOXROOT_WIDEST <= BXR_MOST_ACTIVATED_AT_ONCE,
               "a pool has slots for a wide root, which are put in use at once");

static boxroot_wide wide_create(size_t n, value const *vs)
{
  if (n >= 1 && n <= BOXROOT_WIDEST) return (boxroot_wide)bxr_api_create_wide((unsigned)n, vs);
  bxr_api_fail_width();
  return NULL;
}

static bool wide_modify(boxroot_wide *w, size_t i, value v)
{
  boxroot r = (boxroot)*w;
  if (!bxr_api_modify_slot(&r, (unsigned)i, v)) return false;
  *w = (boxroot_wide)r;
  return true;
}

static void end_again(boxroot r)
{
#if BOXROOT_DEBUG
  bxr_account_delete(r, "boxroot_create_all", (bxr_site){ 0 });
#endif
  bxr_api_delete(r);
}

/* A root could not be made for rs[i]. The result is false. */
static bool undo_all(boxroot *rs, size_t i, size_t n)
{
  int reason = errno;
  for (size_t k = 0; k < n; k++) {
    if (k < i) end_again(rs[k]);
    rs[k] = NULL;
  }
  errno = reason;
  return false;
}

#if !BOXROOT_DEBUG
#if !defined(__GNUC_GNU_INLINE__)
extern inline value boxroot_wide_get(boxroot_wide w, size_t i);
extern inline value const *boxroot_wide_ref(boxroot_wide w, size_t i);
extern inline bool boxroot_wide_modify(boxroot_wide *w, size_t i, value v);
#endif

boxroot_wide boxroot_wide_create(size_t n, value const *vs) { return wide_create(n, vs); }
bool bxr_wide_modify_slow(boxroot_wide *w, size_t i, value v) { return wide_modify(w, i, v); }
void boxroot_wide_delete(boxroot_wide w) { bxr_api_delete((boxroot)w); }

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

/* Until it is set up again, the library accepts what it has torn down. */
static bool is_void_wide(boxroot r) { return bxr_api_is_torn_down() && bxr_account_is_torn_down(r); }

static value const *checked_wide_ref(boxroot_wide w, size_t i, char const *what, bxr_site here)
{
  char text[BXR_SITE_TEXT];
  boxroot r = (boxroot)w;
  if (is_void_wide(r)) return (value const *)r;
  bxr_account_check(r, what, here);
  unsigned wider = ((bxr_pool *)bxr_pool_of(r))->wider;
  if (i > wider)
    bxr_fault("%s: slot %zu of a wide root with %u: called at %s", what, i, wider + 1, bxr_site_text(here, text));
  return (value const *)r + i;
}

static value checked_wide_get(boxroot_wide w, size_t i, bxr_site here)
{
  value const *v = checked_wide_ref(w, i, "boxroot_wide_get", here);
  bxr_runtime_check_lock();
  if (bxr_runtime_self() == NULL && !is_void_wide((boxroot)w))
    bxr_account_fault_no_lock((boxroot)w, "boxroot_wide_get", here);
  return *v;
}

static boxroot_wide checked_wide_create(size_t n, value const *vs, bxr_site here)
{
  bxr_site outer = bxr_account_enter(here);
  boxroot_wide w = wide_create(n, vs);
  bxr_account_leave(outer);
  return w;
}

static bool checked_wide_modify(boxroot_wide *w, size_t i, value v, bxr_site here)
{
  (void)checked_wide_ref(*w, i, "boxroot_wide_modify", here);
  bxr_site outer = bxr_account_enter(here);
  bool done = wide_modify(w, i, v);
  bxr_account_leave(outer);
  return done;
}

static void checked_wide_delete(boxroot r, char const *what, bxr_site here)
{
  if (is_void_wide(r)) return;
  bxr_account_delete(r, what, here);
  bxr_delete_slow(r);
}

static bool checked_create_all(size_t n, value const *vs, boxroot *rs, bxr_site here)
{
  bxr_site outer = bxr_account_enter(here);
  bool done = true;
  for (size_t i = 0; i < n && done; i++) {
    rs[i] = bxr_create_slow(vs[i]);
    if (rs[i] == NULL) done = undo_all(rs, i, n);
  }
  bxr_account_leave(outer);
  return done;
}

static void checked_delete_all(size_t n, boxroot const *rs, bxr_site here)
{
  for (size_t i = 0; i < n; i++)
    if (rs[i] != NULL) checked_wide_delete(rs[i], "boxroot_delete_all", here);
}

#define CALLER __builtin_return_address(0)
#define HERE ((bxr_site){ file, CALLER, line })
boxroot_wide bxr_wide_create_at(size_t n, value const *vs, char const *file, int line)
{
  return checked_wide_create(n, vs, HERE);
}
value const *bxr_wide_ref_at(boxroot_wide w, size_t i, char const *what, char const *file, int line)
{
  return checked_wide_ref(w, i, what, HERE);
}
value bxr_wide_get_at(boxroot_wide w, size_t i, char const *file, int line) { return checked_wide_get(w, i, HERE); }
bool bxr_wide_modify_at(boxroot_wide *w, size_t i, value v, char const *file, int line)
{
  return checked_wide_modify(w, i, v, HERE);
}
void bxr_wide_delete_at(boxroot_wide w, char const *file, int line)
{
  checked_wide_delete((boxroot)w, "boxroot_wide_delete", HERE);
}
bool bxr_create_all_at(size_t n, value const *vs, boxroot *rs, char const *file, int line)
{
  return checked_create_all(n, vs, rs, HERE);
}
void bxr_delete_all_at(size_t n, boxroot const *rs, char const *file, int line) { checked_delete_all(n, rs, HERE); }

#define UNKNOWN ((bxr_site){ NULL, CALLER, 0 })
boxroot_wide boxroot_wide_create(size_t n, value const *vs) { return checked_wide_create(n, vs, UNKNOWN); }
value boxroot_wide_get(boxroot_wide w, size_t i) { return checked_wide_get(w, i, UNKNOWN); }
value const *boxroot_wide_ref(boxroot_wide w, size_t i) { return checked_wide_ref(w, i, "boxroot_wide_ref", UNKNOWN); }
bool boxroot_wide_modify(boxroot_wide *w, size_t i, value v) { return checked_wide_modify(w, i, v, UNKNOWN); }
void boxroot_wide_delete(boxroot_wide w) { checked_wide_delete((boxroot)w, "boxroot_wide_delete", UNKNOWN); }
bool boxroot_create_all(size_t n, value const *vs, boxroot *rs) { return checked_create_all(n, vs, rs, UNKNOWN); }
void boxroot_delete_all(size_t n, boxroot const *rs) { checked_delete_all(n, rs, UNKNOWN); }
#undef HERE
#undef UNKNOWN
#undef CALLER
#endif
