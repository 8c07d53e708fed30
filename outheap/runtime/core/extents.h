/* SPDX-License-Identifier: MIT */
/* A set of extents: disjoint ranges of addresses that never touch (extents that touch are joined). It has two orders:
   by address, and by size and then address. Both are treaps over the same nodes, so that each operation has expected
   logarithmic cost.

   The nodes are outside the memory that they describe. Nodes are allocated in advance (oh_extents_supply,
   oh_extents_promise), when the memory is obtained, so that adding an extent later cannot fail:
     number of extents <= promised <= nodes.

   No locks: the owner of the set has one. */
#ifndef OH_EXTENTS_H
#define OH_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OH_EXTENTS_BY_ADDRESS, OH_EXTENTS_BY_SIZE, OH_EXTENTS_ORDERS };

struct oh_extents_node {
  uintptr_t base;
  size_t bytes;
  /* low[OH_EXTENTS_BY_ADDRESS]: also the list of unused nodes */
  struct oh_extents_node *low[OH_EXTENTS_ORDERS], *high[OH_EXTENTS_ORDERS];
  uint64_t rank; /* of a node in both trees: at least that of its children */
};

struct oh_extents {
  struct oh_extents_node *root[OH_EXTENTS_ORDERS];
  size_t count, bytes; /* extents, and their sizes */
  size_t nodes, promised;
  struct oh_extents_node *unused;
  struct oh_extents_batch *batches; /* nodes that were never used */
  uint64_t seed;
};

static inline uintptr_t oh_extents_end(struct oh_extents_node const *e) { return e->base + e->bytes; }

/* Ensures that `n` more nodes can be promised. False: no memory. */
bool oh_extents_supply(struct oh_extents *, size_t n);
void oh_extents_promise(struct oh_extents *, size_t n);

/* Adds [base, base + bytes), which must not overlap what is there. Result: the extent that it is part of now. */
struct oh_extents_node *oh_extents_add(struct oh_extents *, uintptr_t base, size_t bytes);

/* Removes [base, base + bytes), which lies within `e`. `e` is invalid afterwards. */
void oh_extents_remove(struct oh_extents *, struct oh_extents_node *e, uintptr_t base, size_t bytes);

/* The best fit: the smallest extent of at least `bytes`; of several, the lowest. NULL: none. */
struct oh_extents_node *oh_extents_best(struct oh_extents const *, size_t bytes);
/* The last extent that begins at the address or below; NULL: none. */
struct oh_extents_node *oh_extents_below(struct oh_extents const *, uintptr_t address);
/* The first extent that begins at the address or above; NULL: none. */
struct oh_extents_node *oh_extents_above(struct oh_extents const *, uintptr_t address);
/* Is a part of [base, base + bytes) in the set? */
bool oh_extents_overlap(struct oh_extents const *, uintptr_t base, size_t bytes);

void oh_extents_validate(struct oh_extents const *);

#endif
