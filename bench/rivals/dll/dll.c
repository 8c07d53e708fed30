/* SPDX-License-Identifier: MIT */
#define CAML_INTERNALS
#include "boxroot.h"
#include <caml/minor_gc.h>
#include <caml/roots.h>
#include <caml/version.h>

dll_node dll_young = {Val_unit, &dll_young, &dll_young};
dll_node dll_old = {Val_unit, &dll_old, &dll_old};

/* All nodes of the young ring become nodes of the old one. */
static void join_rings(void)
{
  if (dll_young.next == &dll_young) return;
  dll_young.previous->next = dll_old.next;
  dll_old.next->previous = dll_young.previous;
  dll_old.next = dll_young.next;
  dll_young.next->previous = &dll_old;
  dll_young.next = dll_young.previous = &dll_young;
}

#if OCAML_VERSION >= 50000

static scan_roots_hook previous_hook;

static void scan_ring(dll_node *ring, scanning_action action, void *data)
{
  for (dll_node *node = ring->next; node != ring; node = node->next) action(data, node->held, &node->held);
}

static void scan(scanning_action action, scanning_action_flags flags, void *data, caml_domain_state *domain)
{
  if (previous_hook) previous_hook(action, flags, data, domain);
  scan_ring(&dll_young, action, data);
  if (flags & SCANNING_ONLY_YOUNG_VALUES) join_rings();
  else scan_ring(&dll_old, action, data);
}

#else

static void (*previous_hook)(scanning_action);

static void scan_ring(dll_node *ring, scanning_action action)
{
  for (dll_node *node = ring->next; node != ring; node = node->next) action(node->held, &node->held);
}

static void scan(scanning_action action)
{
  if (previous_hook) previous_hook(action);
  scan_ring(&dll_young, action);
  if (action == &caml_oldify_one) join_rings();
  else scan_ring(&dll_old, action);
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
