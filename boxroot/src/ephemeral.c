/* SPDX-License-Identifier: MIT */
/* Ephemeral roots (boxroot/ephemeral.h): each is a root that holds an ephemeron of the runtime with one key. So it
   ends, on any thread, as a root does, and means what the runtime means by an ephemeron.

   Idea: the ephemerons of Hayes (Ephemerons: a new finalization mechanism, 1997), as the module Ephemeron has them. */
#ifndef BXR_DEFINES_FUNCTIONS
#define BXR_DEFINES_FUNCTIONS /* boxroot/config.h */
#endif
#include "api.h"
#include <boxroot/ephemeral.h>
#include "checked/account.h"
#include "runtime.h"

static boxroot root_of(boxroot_ephemeral e) { return (boxroot)e; }

static boxroot_ephemeral ephemeral_create(value key, value data)
{
  if (!bxr_api_may_hold_weakly(key)) return NULL;
  value ephemeron = bxr_runtime_ephemeron(key);
  if (BXR_UNLIKELY(ephemeron == 0)) {
    bxr_api_fail_no_memory();
    return NULL;
  }
#if BOXROOT_DEBUG
  boxroot r = bxr_create_slow(ephemeron);
#else
  boxroot r = boxroot_create(ephemeron);
#endif
  if (BXR_UNLIKELY(r == NULL)) return NULL; /* the ephemeron is empty: it is garbage, and keeps nothing alive */
  bxr_runtime_ephemeron_set(ephemeron, key, data);
  return (boxroot_ephemeral)r;
}

/* After a teardown the memory of the root may be there still, or not. */
static bool ephemeral_get(boxroot_ephemeral e, value *key, value *data)
{
  return !BXR_UNLIKELY(bxr_api_is_torn_down()) && bxr_runtime_ephemeron_get(*(value *)root_of(e), key, data);
}

#if !BOXROOT_DEBUG
boxroot_ephemeral boxroot_ephemeral_create(value key, value data) { return ephemeral_create(key, data); }
bool boxroot_ephemeral_get(boxroot_ephemeral e, value *v) { return ephemeral_get(e, NULL, v); }
bool boxroot_ephemeral_get_key(boxroot_ephemeral e, value *v) { return ephemeral_get(e, v, NULL); }
void boxroot_ephemeral_delete(boxroot_ephemeral e) { boxroot_delete(root_of(e)); }
#else
/* --- the checked build -------------------------------------------------------------------------------------------- */

static boxroot_ephemeral checked_ephemeral_create(value key, value data, bxr_site here)
{
  bxr_site outer = bxr_account_enter(here);
  boxroot_ephemeral e = ephemeral_create(key, data);
  bxr_account_leave(outer);
  return e;
}

/* Until it is set up again, the library accepts what it has torn down. */
static bool is_torn_down(boxroot_ephemeral e)
{
  return bxr_api_is_torn_down() && bxr_account_is_torn_down(root_of(e));
}

static bool checked_ephemeral_get(boxroot_ephemeral e, value *key, value *data, char const *what, bxr_site here)
{
  char text[BXR_SITE_TEXT];
  if (is_torn_down(e)) return false;
  bxr_account_check(root_of(e), what, here);
  bxr_runtime_check_lock();
  if (bxr_runtime_self() == NULL) bxr_account_fault_no_lock(root_of(e), what, here);
  if (!bxr_runtime_is_ephemeron(*(value *)root_of(e)))
    bxr_fault("%s: no ephemeral root: called with the root %p at %s", what, (void *)e, bxr_site_text(here, text));
  return ephemeral_get(e, key, data);
}

static void checked_ephemeral_delete(boxroot_ephemeral e, bxr_site here)
{
  if (is_torn_down(e)) return;
  bxr_account_delete(root_of(e), "boxroot_ephemeral_delete", here);
  bxr_delete_slow(root_of(e));
}

#define CALLER __builtin_return_address(0)
#define HERE ((bxr_site){ file, CALLER, line })
boxroot_ephemeral bxr_ephemeral_create_at(value key, value data, char const *file, int line)
{
  return checked_ephemeral_create(key, data, HERE);
}
bool bxr_ephemeral_get_at(boxroot_ephemeral e, value *v, char const *file, int line)
{
  return checked_ephemeral_get(e, NULL, v, "boxroot_ephemeral_get", HERE);
}
bool bxr_ephemeral_get_key_at(boxroot_ephemeral e, value *v, char const *file, int line)
{
  return checked_ephemeral_get(e, v, NULL, "boxroot_ephemeral_get_key", HERE);
}
void bxr_ephemeral_delete_at(boxroot_ephemeral e, char const *file, int line) { checked_ephemeral_delete(e, HERE); }

#define UNKNOWN ((bxr_site){ NULL, CALLER, 0 })
boxroot_ephemeral boxroot_ephemeral_create(value key, value data)
{
  return checked_ephemeral_create(key, data, UNKNOWN);
}
bool boxroot_ephemeral_get(boxroot_ephemeral e, value *v)
{
  return checked_ephemeral_get(e, NULL, v, "boxroot_ephemeral_get", UNKNOWN);
}
bool boxroot_ephemeral_get_key(boxroot_ephemeral e, value *v)
{
  return checked_ephemeral_get(e, v, NULL, "boxroot_ephemeral_get_key", UNKNOWN);
}
void boxroot_ephemeral_delete(boxroot_ephemeral e) { checked_ephemeral_delete(e, UNKNOWN); }
#undef HERE
#undef UNKNOWN
#undef CALLER
#endif
