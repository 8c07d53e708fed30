/* SPDX-License-Identifier: MIT */
/* The public functions of the checked build (boxroot/checked.h), which consult and keep the account of slots. */
#include "../api.h"
#include "../runtime.h"
#include "account.h"

#if BOXROOT_DEBUG
static boxroot checked_create(value v, char const *file, int line, void const *address)
{
  bxr_site outer = bxr_account_enter((bxr_site){ file, address, line });
  boxroot r = bxr_create_slow(v);
  bxr_account_leave(outer);
  return r;
}

/* A handle is good as long as the lock of its domain is held. With OCaml 4.14 it is not looked at. */
static void check_handle(boxroot_domain d, char const *what, char const *file, int line, void const *address)
{
  void *self = bxr_runtime_self();
  char text[BXR_SITE_TEXT];
  if (!BXR_OCAML5) return;
  if (self == NULL || d == NULL || bxr_load_relaxed(&((bxr_domain_head *)d)->state) != self)
    bxr_fault("%s: wrong handle: called at %s, where the lock of the handle's domain is not held", what,
              bxr_site_text((bxr_site){ file, address, line }, text));
}

static boxroot checked_create_in(boxroot_domain d, value v, char const *file, int line, void const *address)
{
  check_handle(d, "boxroot_create_in", file, line, address);
  bxr_site outer = bxr_account_enter((bxr_site){ file, address, line });
  boxroot r = BXR_OCAML5 || ((uintptr_t)d & 1) != 0 ? bxr_create_in_slow(d, v) : bxr_create_slow(v);
  bxr_account_leave(outer);
  return r;
}

/* Until it is set up again, the library accepts what it has torn down. */
static bool is_void(boxroot r)
{
  return bxr_api_is_torn_down() && bxr_account_is_torn_down(r);
}

static value const *checked_get_ref(boxroot r, char const *what, bxr_site here)
{
  if (!is_void(r)) bxr_account_check(r, what, here);
  return (value const *)r;
}

static value checked_get(boxroot r, bxr_site here)
{
  value const *v = checked_get_ref(r, "boxroot_get", here);
  bxr_runtime_check_lock();
  if (bxr_runtime_self() == NULL && !is_void(r)) bxr_account_fault_no_lock(r, "boxroot_get", here);
  return *v;
}

static void checked_delete(boxroot r, char const *file, int line, void const *address)
{
  if (is_void(r)) return;
  bxr_account_delete(r, "boxroot_delete", (bxr_site){ file, address, line });
  bxr_delete_slow(r);
}

static void checked_delete_in(boxroot_domain d, boxroot r, char const *file, int line, void const *address)
{
  check_handle(d, "boxroot_delete_in", file, line, address);
  checked_delete(r, file, line, address);
}

static bool checked_modify(boxroot *r, value v, char const *file, int line, void const *address)
{
  if (!is_void(*r)) bxr_account_check(*r, "boxroot_modify", (bxr_site){ file, address, line });
  bxr_site outer = bxr_account_enter((bxr_site){ file, address, line });
  bool done = bxr_modify_slow(r, v);
  bxr_account_leave(outer);
  return done;
}

/* There are two sets of these: for calls that tell their line; and for others, by address or in parentheses, or from
   another language. */
#define CALLER __builtin_return_address(0)
boxroot bxr_create_at(value v, char const *file, int line) { return checked_create(v, file, line, CALLER); }
boxroot bxr_create_in_at(boxroot_domain d, value v, char const *file, int line)
{
  return checked_create_in(d, v, file, line, CALLER);
}
value bxr_get_at(boxroot r, char const *file, int line) { return checked_get(r, (bxr_site){ file, CALLER, line }); }
value const *bxr_get_ref_at(boxroot r, char const *file, int line)
{
  return checked_get_ref(r, "boxroot_get_ref", (bxr_site){ file, CALLER, line });
}
void bxr_delete_at(boxroot r, char const *file, int line) { checked_delete(r, file, line, CALLER); }
void bxr_delete_in_at(boxroot_domain d, boxroot r, char const *file, int line)
{
  checked_delete_in(d, r, file, line, CALLER);
}
bool bxr_modify_at(boxroot *r, value v, char const *file, int line) { return checked_modify(r, v, file, line, CALLER); }

boxroot boxroot_create(value v) { return checked_create(v, NULL, 0, CALLER); }
boxroot boxroot_create_in(boxroot_domain d, value v) { return checked_create_in(d, v, NULL, 0, CALLER); }
value boxroot_get(boxroot r) { return checked_get(r, (bxr_site){ NULL, CALLER, 0 }); }
value const *boxroot_get_ref(boxroot r) { return checked_get_ref(r, "boxroot_get_ref", (bxr_site){ NULL, CALLER, 0 }); }
void boxroot_delete(boxroot r) { checked_delete(r, NULL, 0, CALLER); }
void boxroot_delete_in(boxroot_domain d, boxroot r) { checked_delete_in(d, r, NULL, 0, CALLER); }
bool boxroot_modify(boxroot *r, value v) { return checked_modify(r, v, NULL, 0, CALLER); }

uint64_t boxroot_report_roots(void)
{
  bxr_leaks_report("");
  return bxr_account_live();
}
#else
uint64_t boxroot_report_roots(void) { return UINT64_MAX; }
#endif
