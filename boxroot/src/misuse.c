/* SPDX-License-Identifier: MIT */
#include "misuse.h"
#include "runtime.h"

#if BOXROOT_DEBUG
#include <stdlib.h>

/* The place of the public call that this thread is in. A signal handler or a finaliser may make another call
   meanwhile: each call puts back what it found. */
static BXR_THREAD_LOCAL bxr_site here;

static bxr_site enter_call(char const *file, int line, void const *address)
{
  bxr_site outer = here;
  here = (bxr_site){ file, address, line };
  return outer;
}

static boxroot create(value v, char const *file, int line, void const *address)
{
  bxr_site outer = enter_call(file, line, address);
  boxroot r = bxr_create_slow(v);
  here = outer;
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

static boxroot create_in(boxroot_domain d, value v, char const *file, int line, void const *address)
{
  check_handle(d, "boxroot_create_in", file, line, address);
  return create(v, file, line, address);
}

static value const *get(boxroot r, char const *what, char const *file, int line, void const *address)
{
  bxr_account_check(r, what, (bxr_site){ file, address, line });
  return (value const *)r;
}

static void delete(boxroot r, char const *file, int line, void const *address)
{
  bxr_account_delete(r, (bxr_site){ file, address, line });
  bxr_delete_slow(r);
}

static void delete_in(boxroot_domain d, boxroot r, char const *file, int line, void const *address)
{
  check_handle(d, "boxroot_delete_in", file, line, address);
  delete(r, file, line, address);
}

static bool modify(boxroot *r, value v, char const *file, int line, void const *address)
{
  bxr_account_check(*r, "boxroot_modify", (bxr_site){ file, address, line });
  bxr_site outer = enter_call(file, line, address);
  bool done = bxr_modify_slow(r, v);
  here = outer;
  return done;
}

/* Two sets of these: for calls that tell their line; for others, by address or in parentheses, or from another language. */
#define CALLER __builtin_return_address(0)
boxroot bxr_create_at(value v, char const *file, int line) { return create(v, file, line, CALLER); }
boxroot bxr_create_in_at(boxroot_domain d, value v, char const *file, int line) { return create_in(d, v, file, line, CALLER); }
value bxr_get_at(boxroot r, char const *file, int line) { return *get(r, "boxroot_get", file, line, CALLER); }
value const *bxr_get_ref_at(boxroot r, char const *file, int line) { return get(r, "boxroot_get_ref", file, line, CALLER); }
void bxr_delete_at(boxroot r, char const *file, int line) { delete(r, file, line, CALLER); }
void bxr_delete_in_at(boxroot_domain d, boxroot r, char const *file, int line) { delete_in(d, r, file, line, CALLER); }
bool bxr_modify_at(boxroot *r, value v, char const *file, int line) { return modify(r, v, file, line, CALLER); }

boxroot boxroot_create(value v) { return create(v, NULL, 0, CALLER); }
boxroot boxroot_create_in(boxroot_domain d, value v) { return create_in(d, v, NULL, 0, CALLER); }
value boxroot_get(boxroot r) { return *get(r, "boxroot_get", NULL, 0, CALLER); }
value const *boxroot_get_ref(boxroot r) { return get(r, "boxroot_get_ref", NULL, 0, CALLER); }
void boxroot_delete(boxroot r) { delete(r, NULL, 0, CALLER); }
void boxroot_delete_in(boxroot_domain d, boxroot r) { delete_in(d, r, NULL, 0, CALLER); }
bool boxroot_modify(boxroot *r, value v) { return modify(r, v, NULL, 0, CALLER); }

void bxr_mark_live(boxroot r) { bxr_account_create(r, here); }
void bxr_mark_moved(boxroot from, boxroot to) { bxr_account_move(from, to, here); }

uint64_t boxroot_report_roots(void)
{
  bxr_account_report("");
  return bxr_account_live();
}

static void report_at_exit(void)
{
  if (bxr_account_live() > 0) bxr_account_report(" at exit");
}

void bxr_misuse_setup(void)
{
  static bool registered;
  if (bxr_account_wanted("BOXROOT_LEAKS") && !registered) registered = atexit(report_at_exit) == 0;
}

void bxr_misuse_teardown(void)
{
  if (bxr_account_wanted("BOXROOT_LEAKS") && bxr_account_live() > 0) bxr_account_report(" at teardown");
  bxr_account_void_all();
}
#else
uint64_t boxroot_report_roots(void) { return UINT64_MAX; }
#endif
