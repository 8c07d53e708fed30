/* SPDX-License-Identifier: MIT */
/* A set of free extents: ranges of addresses, disjoint, never touching (what touches is joined), in two orders: by address, and by size and
   then address. Both are treaps over the same nodes: expected logarithmic cost for everything but `first`-to-last walks.

   The nodes lie outside the memory that they describe. Their number is agreed on in advance (oh_extents_supply, oh_extents_promise), at the
   time when the memory is obtained, so that giving an extent back cannot fail:
     number of extents <= promised <= nodes.

   No locks: the owner of the set has one. */
#ifndef OH_EXTENT_H
#define OH_EXTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OH_BY_ADDRESS, OH_BY_SIZE, OH_ORDERS };

struct oh_extent {
  uintptr_t base;
  size_t bytes;
  struct oh_extent *low[OH_ORDERS], *high[OH_ORDERS]; /* low[OH_BY_ADDRESS]: also the list of unused nodes */
  uint64_t rank; /* of a node in both trees: at least that of its children */
};

struct oh_extents {
  struct oh_extent *root[OH_ORDERS];
  size_t count, bytes; /* extents, and their sizes */
  size_t nodes, promised;
  struct oh_extent *unused;
  struct oh_extent_batch *batches; /* nodes that were never used */
  uint64_t seed;
};

static inline uintptr_t oh_extent_end(struct oh_extent const *e) { return e->base + e->bytes; }

/* Sees to it that `n` more nodes can be promised. False: no memory. */
bool oh_extents_supply(struct oh_extents *, size_t n);
void oh_extents_promise(struct oh_extents *, size_t n);

/* Adds [base, base + bytes), which must not overlap what is there. Result: the extent that it is part of now. */
struct oh_extent *oh_extents_give(struct oh_extents *, uintptr_t base, size_t bytes);

/* Removes [base, base + bytes), which lies within `e`; `e` is no more afterwards. */
void oh_extents_cut(struct oh_extents *, struct oh_extent *e, uintptr_t base, size_t bytes);

struct oh_extent *oh_extents_best(struct oh_extents const *, size_t bytes);        /* the smallest that is not smaller; of these, the lowest */
struct oh_extent *oh_extents_below(struct oh_extents const *, uintptr_t address);  /* the last one that begins at the address or below */
struct oh_extent *oh_extents_above(struct oh_extents const *, uintptr_t address);  /* the first one that begins at the address or above */
bool oh_extents_meet(struct oh_extents const *, uintptr_t base, size_t bytes);     /* does a part of it lie in the set? */

void oh_extents_validate(struct oh_extents const *);

#endif
