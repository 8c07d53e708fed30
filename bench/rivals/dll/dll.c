/* SPDX-License-Identifier: MIT */
#define CAML_INTERNALS
#include "boxroot.h"
#include "scanning.h"

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

static void scan_ring(dll_node *ring, visitor v)
{
  for (dll_node *node = ring->next; node != ring; node = node->next) visit(v, &node->held);
}

static void scan_roots(visitor v, bool only_young)
{
  scan_ring(&dll_young, v);
  if (only_young) join_rings();
  else scan_ring(&dll_old, v);
}
