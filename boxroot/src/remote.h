/* SPDX-License-Identifier: MIT */
/* Remote deletion, by a thread without the domain lock of the pool's owner, by the owner while its slots are being
   visited, and of slots that the marker is to read first: how such a deletion is recorded, and how the owner drains
   what is recorded.

   The slot keeps its value until the owner carries the deletion out, so that no scan and no marker is ever disturbed.
   No thread waits for another. Bits of pending deletions form a hierarchy, and the thread that finds a level empty is
   responsible for the next:

     word of the segment's bitmap, one bit per slot  →  pool->pending_groups, one bit per word
                                                     →  list home->pending, of pools

   The owner goes the other way and reaches a word only by way of its group's bit, which is set by the thread that found
   the word empty. A pool can therefore not become empty, let alone be returned, before the last thread that still has
   to touch it has done so. A deletion costs one atomic operation, and one more in 64 when neighbours are deleted in a
   row.

   A domain that defers deletions collects a batch, the bits of one word, and sets them together
   (bxr_remote_delete_batched): neighbours deleted in a row cost next to nothing. They wait for the domain's next
   collection at the latest.
   Idea: a bitmap of pending deletions, from the paper on Boxroot (footnote 9).

   Invariant: a pool with pending_groups != 0 is on exactly one of its home's lists `pending`, `to_drain` and `waiting`;
   or the thread that made them != 0, or one that passes the pool on, is about to put it there. */
#ifndef BXR_REMOTE_H
#define BXR_REMOTE_H

#include "domain.h"

/* Records the deletion of r. Needs r owned; no lock. */
BXR_INTERNAL void bxr_remote_delete(boxroot r);

/* Records the deletion of r in the batch of `me`, a domain that uses the library. Needs the lock of `me`, and that none
   of its slots is being visited; any root may be deleted this way. */
BXR_INTERNAL void bxr_remote_delete_batched(bxr_domain *me, boxroot r);

/* The same, where r belongs to the batch that is being collected; otherwise does nothing, and the result is false. */
static inline bool bxr_remote_delete_in_batch(bxr_domain *me, boxroot r)
{
  size_t i = ((uintptr_t)r & (BXR_POOL_SIZE - 1)) / sizeof(uintptr_t);
  if (((uintptr_t)r & ~(uintptr_t)(64 * sizeof(uintptr_t) - 1)) != me->batch_group) return false;
  me->batch_bits |= (uint64_t)1 << (i % 64);
  return true;
}

/* Records the batch of `me`. Needs its lock. */
BXR_INTERNAL void bxr_remote_flush(bxr_domain *me);

/* Lists the pools for which some domain has deletions in its batch. The list is empty where there is one domain, and
   incomplete if n > BXR_MOST_BATCHES. A deletion that happened before the call is in the batch of a listed pool, or
   recorded already. So for a pool that has no roots and is not listed, nothing more will be recorded. Cost: a look at
   each identity that a domain has had. */
enum { BXR_MOST_BATCHES = 32 };
typedef struct bxr_batches {
  unsigned n;
  bxr_pool *pools[BXR_MOST_BATCHES];
} bxr_batches;
BXR_INTERNAL void bxr_remote_list_batches(bxr_batches *out);
BXR_INTERNAL bool bxr_remote_batches_may_have(bxr_batches const *b, bxr_pool *p);

/* Passes the pools on the pending list of d on to the homes that they now have. */
BXR_INTERNAL void bxr_remote_forward(bxr_domain *d);

/* The same for those on its lists `to_drain` and `waiting` as well. Needs the lock of d. */
BXR_INTERNAL void bxr_remote_forward_all(bxr_domain *d);

/* Forgets the pending deletions of p, whose roots have been torn down. No other thread may touch p any more. */
BXR_INTERNAL void bxr_remote_discard(bxr_pool *p);

/* --- draining ----------------------------------------------------------------------------------------------------- */

/* Draining: the owner of a pool carries its pending deletions out, and their slots go on the free list.

   That is done in steps of bounded cost; the pools that become pending meanwhile have their turn after those that are.
   A pool of which the marker may have to read slots waits until the marker has finished: its values survive the cycle
   in any case, and nothing need be darkened.

   bxr_drain_pending carries out deletions that are pending at d, until they are done or have cost more than `budget`: a
   unit is about the work for a slot, some nanoseconds. What must wait for the marker is left. Needs the lock of d, and
   that none of its slots is being visited. The result is what is left of the budget. */
#define BXR_DRAIN_ALL INT64_MAX
#define BXR_DRAIN_BUDGET_IN_PAUSE 100000  /* half a millisecond */
#define BXR_DRAIN_BUDGET_IN_CREATE 6000   /* some ten microseconds */
BXR_INTERNAL int64_t bxr_drain_pending(bxr_domain *d, int64_t budget);

/* Carries out the deletions of a pool that waits for the marker, after darkening what the pool holds. It looks for one
   that will have `worth` free slots then, among the next candidates. The result is that pool, which can be idle now; or
   NULL. Cost: a look at each candidate, and at each value of a pool. */
BXR_INTERNAL bxr_pool *bxr_drain_one_waiting(bxr_domain *d, uint32_t worth, int candidates);

#endif
