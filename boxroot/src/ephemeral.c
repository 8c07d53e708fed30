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
#include "delete.h"
#include "runtime.h"
#include "status.h"

static boxroot root_of(boxroot_ephemeral e) { return (boxroot)e; }

static boxroot_ephemeral ephemeral_create(value key, value data)
{
  if (!bxr_api_may_hold_weakly(key)) return NULL;
  value ephemeron = bxr_runtime_ephemeron(key);
  if (BXR_UNLIKELY(ephemeron == 0)) {
    bxr_fail(BXR_FAIL_NO_MEMORY);
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
  return !BXR_UNLIKELY(bxr_status_is_torn_down()) && bxr_runtime_ephemeron_get(*(value *)root_of(e), key, data);
}

/* Faults unless e is live, or void. */
static void check_ephemeral(boxroot_ephemeral e)
{
  bxr_api_check_use(root_of(e));
#if BOXROOT_DEBUG
  char text[BXR_SITE_TEXT];
  if (!bxr_status_is_torn_down() && !bxr_runtime_is_ephemeron(*(value *)root_of(e)))
    bxr_fault("%s: no ephemeral root: called with the root %p at %s", bxr_site_function(), (void *)e,
              bxr_site_here(text));
#endif
}

boxroot_ephemeral boxroot_ephemeral_create(value key, value data) { BXR_CALL; return ephemeral_create(key, data); }

bool boxroot_ephemeral_get(boxroot_ephemeral e, value *v)
{
  BXR_CALL;
  check_ephemeral(e);
  return ephemeral_get(e, NULL, v);
}

bool boxroot_ephemeral_get_key(boxroot_ephemeral e, value *v)
{
  BXR_CALL;
  check_ephemeral(e);
  return ephemeral_get(e, v, NULL);
}

void boxroot_ephemeral_delete(boxroot_ephemeral e)
{
  BXR_CALL;
#if BOXROOT_DEBUG
  if (bxr_account_delete(root_of(e))) bxr_delete_slow(root_of(e));
#else
  boxroot_delete(root_of(e));
#endif
}
