/* SPDX-License-Identifier: MIT */
/* Remote deletion: by a thread without the owner's domain lock, by the owner while its slots are being visited, and of
   slots that the marker is to read first.

   The slot keeps its value until the owner carries the deletion out (fold.h), so that no scan and no marker is ever
   disturbed. No thread waits for another. Bits of pending deletions form a hierarchy, and the thread that finds a level
   empty is responsible for the next:

     word of the region's bitmap, one bit per slot  →  pool->pending_groups, one bit per word
                                                    →  list home->pending, of pools

   The owner goes the other way and reaches a word only by way of its group's bit, which is set by the thread that found
   the word empty. A pool can therefore not become empty, let alone be returned, before the last thread that still has
   to touch it has done so. A deletion costs one atomic operation, and one more in 64 when neighbours are deleted in a
   row.

   A domain that defers deletions collects bits of one word and sets them together (bxr_remote_delete_by): neighbours
   deleted in a row cost next to nothing. They wait for the domain's next collection at the latest.
   Idea: a bitmap of pending deletions, from the paper on Boxroot (footnote 9).

   Invariant: a pool with pending_groups != 0 is on exactly one of: its home's list `pending`, its home's lists to_fold
   and to_wait; or the thread that made them != 0, or one that passes it on, is about to put it there. */
#ifndef BXR_REMOTE_H
#define BXR_REMOTE_H

#include "domain.h"

/* Records the deletion of r. Needs r owned; no lock. */
BXR_INTERNAL void bxr_remote_delete(boxroot r);

/* The same on a domain that uses the library: needs the lock of `me`, and that none of its slots is being visited. */
BXR_INTERNAL void bxr_remote_delete_by(bxr_domain *me, boxroot r);

/* The same if r is a neighbour of the last one, which makes it quick; false otherwise. Any root may be deleted this
   way. */
static inline bool bxr_remote_delete_neighbour(bxr_domain *me, boxroot r)
{
  size_t i = ((uintptr_t)r & (BXR_POOL_SIZE - 1)) / sizeof(uintptr_t);
  if (((uintptr_t)r & ~(uintptr_t)(64 * sizeof(uintptr_t) - 1)) != me->out_group) return false;
  me->out_bits |= (uint64_t)1 << (i % 64);
  return true;
}

/* Records what bxr_remote_delete_by has collected. Needs the lock of `me`. */
BXR_INTERNAL void bxr_remote_flush(bxr_domain *me);

/* Passes the pools on the pending list of d on to the homes that they now have. */
BXR_INTERNAL void bxr_remote_forward(bxr_domain *d);

/* The same for those on its queues as well. Needs the lock of d. */
BXR_INTERNAL void bxr_remote_forward_all(bxr_domain *d);

/* Puts p on the pending list of its home. */
BXR_INTERNAL void bxr_remote_announce(bxr_pool *p);

/* Forgets the pending deletions of p, whose roots have been torn down. No other thread may touch it any more. */
BXR_INTERNAL void bxr_remote_forget(bxr_pool *p);

#endif
