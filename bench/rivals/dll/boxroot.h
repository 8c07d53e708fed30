/* SPDX-License-Identifier: MIT */
/* The simplest root allocator: malloc'ed nodes on two doubly-linked rings, one for nodes that may hold a young value.
   For one thread on one domain. */
#ifndef BENCH_DLL_H
#define BENCH_DLL_H

#include <caml/mlvalues.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct dll_node {
  value held; /* first, so that a node's address is also that of its value */
  struct dll_node *next, *previous;
} dll_node;

typedef dll_node *boxroot;

/* heads of the rings; a node is in dll_young until the minor collection after its last change */
extern dll_node dll_young, dll_old;
bool boxroot_setup(void);

static inline void dll_insert(dll_node *ring, dll_node *node)
{
  node->next = ring->next;
  node->previous = ring;
  ring->next->previous = node;
  ring->next = node;
}

static inline void dll_remove(dll_node *node)
{
  node->next->previous = node->previous;
  node->previous->next = node->next;
}

static inline boxroot boxroot_create(value v)
{
  dll_node *node = malloc(sizeof *node);
  if (node) {
    node->held = v;
    dll_insert(&dll_young, node);
  }
  return node;
}

static inline value boxroot_get(boxroot r) { return r->held; }
static inline value const *boxroot_get_ref(boxroot r) { return &r->held; }

static inline void boxroot_delete(boxroot r)
{
  dll_remove(r);
  free(r);
}

static inline bool boxroot_modify(boxroot *r, value v)
{
  (*r)->held = v;
  dll_remove(*r);
  dll_insert(&dll_young, *r);
  return true;
}

#endif
