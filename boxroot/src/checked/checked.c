/* SPDX-License-Identifier: MIT */
/* The public functions of the checked build (boxroot/checked.h) that are inline in a release build. */
#include "../api.h"
#include "../delete.h"
#include "../runtime.h"
#include "account.h"

#if BOXROOT_DEBUG
/* A handle is good as long as the lock of its domain is held. With OCaml 4.14 it is not looked at. */
static void check_handle(boxroot_domain d)
{
  void *self = bxr_runtime_self();
  char text[BXR_SITE_TEXT];
  if (!BXR_OCAML5) return;
  if (self == NULL || d == NULL || bxr_load_relaxed(&((bxr_domain_head *)d)->state) != self)
    bxr_fault("%s: wrong handle: called at %s, where the lock of the handle's domain is not held", bxr_site_function(),
              bxr_site_here(text));
}

boxroot boxroot_create(value v) { BXR_CALL; return bxr_create_slow(v); }

boxroot boxroot_create_in(boxroot_domain d, value v)
{
  BXR_CALL;
  check_handle(d);
  return BXR_OCAML5 || ((uintptr_t)d & 1) != 0 ? bxr_create_in_slow(d, v) : bxr_create_slow(v);
}

value boxroot_get(boxroot r)
{
  BXR_CALL;
  bxr_api_check_use(r);
  return *(value *)r;
}

value const *boxroot_get_ref(boxroot r)
{
  BXR_CALL;
  (void)bxr_account_check(r);
  return (value const *)r;
}

void boxroot_delete(boxroot r) { BXR_CALL; if (bxr_account_delete(r)) bxr_delete_slow(r); }

void boxroot_delete_in(boxroot_domain d, boxroot r)
{
  BXR_CALL;
  check_handle(d);
  if (bxr_account_delete(r)) bxr_delete_slow(r);
}

bool boxroot_modify(boxroot *r, value v)
{
  BXR_CALL;
  (void)bxr_account_check(*r);
  return bxr_modify_slow(r, v);
}

uint64_t boxroot_report_roots(void)
{
  bxr_leaks_report("");
  return bxr_account_live();
}
#else
uint64_t boxroot_report_roots(void) { return UINT64_MAX; }
#endif
