/* SPDX-License-Identifier: MIT */
/* The hook by which the collector finds roots, for an implementation that defines `scan_roots`: it visits all cells, or
   those at least that may hold young values. CAML_INTERNALS is defined. */
#include <caml/minor_gc.h>
#include <caml/roots.h>
#include <caml/version.h>
#include <stdbool.h>

typedef struct { scanning_action action; void *data; } visitor;

static void scan_roots(visitor v, bool only_young);

#if OCAML_VERSION >= 50000

static scan_roots_hook previous_hook;
static void visit(visitor v, value *cell) { v.action(v.data, *cell, cell); }

static void scan(scanning_action action, scanning_action_flags flags, void *data, caml_domain_state *domain)
{
  if (previous_hook) previous_hook(action, flags, data, domain);
  scan_roots((visitor){action, data}, flags & SCANNING_ONLY_YOUNG_VALUES);
}

#else

static void (*previous_hook)(scanning_action);
static void visit(visitor v, value *cell) { v.action(*cell, cell); }

static void scan(scanning_action action)
{
  if (previous_hook) previous_hook(action);
  scan_roots((visitor){action, NULL}, action == &caml_oldify_one);
}

#endif

bool boxroot_setup(void)
{
  static bool installed = false;
  if (!installed) {
    previous_hook = caml_scan_roots_hook;
    caml_scan_roots_hook = scan;
    installed = true;
  }
  return true;
}
