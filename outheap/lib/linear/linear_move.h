/* SPDX-License-Identifier: MIT */
/* Containers as the module Outheap_linear has them in the heap, and the moving of what they own. Each cell and each
   text has one pointer to it, in the cell before it, in a bucket, or in the owner; the elements of a table with a bound
   have one more for each neighbour in the order of use. */
#ifndef OUTHEAP_LINEAR_MOVE_H
#define OUTHEAP_LINEAR_MOVE_H

#include "linear_pool.h"

/* An owner, the buckets of a table, and what a table begins with: as the types of that module say. */
struct outheap_linear_owner { value more, busy, version, root, last, left, size, flag; };
struct outheap_linear_buckets { value mark, segments, count, half; };
struct outheap_linear_table { value buckets, most, pool, evicted; };

#define OUTHEAP_LINEAR_SEGMENT 4096 /* buckets of a segment */

static inline value *outheap_linear_bucket(struct outheap_linear_buckets const *b, intnat i)
{
  value segment = Field(b->segments, i / OUTHEAP_LINEAR_SEGMENT);
  return (value *)(segment & ~(value)1) + i % OUTHEAP_LINEAR_SEGMENT;
}

/* What is in a container. */
enum outheap_linear_kind { OUTHEAP_LINEAR_CHAIN, OUTHEAP_LINEAR_TREE, OUTHEAP_LINEAR_TABLE };

/* Moves cells and texts of a container, which the caller has to itself, out of pages that are set aside: of a table,
   those of some buckets, from this one on. Returns the next bucket, or -1: that was all. */
intnat outheap_linear_move(struct outheap_linear_owner *, enum outheap_linear_kind, intnat from);

#endif
