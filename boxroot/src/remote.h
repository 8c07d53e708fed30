/* SPDX-License-Identifier: MIT */
/* Deferred deletion: by a thread without the owner's domain lock, by the owner while its slots are being visited, and of slots that the
   marker is to read first.

   The slot keeps its value until the owner carries the deletion out ("folds" it), so that no scan and no marker is ever disturbed. Nobody
   waits for anybody. Bits of pending deletions form a hierarchy, and whoever finds a level empty is responsible for the next:

     word of the region's bitmap, one bit per slot  →  pool->pending_groups, one bit per word  →  list home->pending, of pools

   The owner goes the other way and reaches a word only by way of its group's bit, which is set by the one who found the word
   empty. A pool can therefore not become empty, let alone be given back, before the last thread that still has to touch it has done
   so. A deletion costs one atomic operation, and one more in 64 when neighbours are deleted in a row.

   A domain that defers deletions collects bits of one word and sets them together (bxr_remote_delete_by): neighbours deleted
   in a row cost next to nothing. They wait for the next collection at the latest, when the domain is bound to come by.
   Idea: a bitmap of pending deletions, from the paper on Boxroot (footnote 9).

   Folding is done in steps of bounded cost; the pools that are pending when the turn of the last one has come have their turn next. A pool of which the marker may have to read slots waits
   until it is through: its values survive the cycle in any case, and nothing need be darkened.

   Invariant: a pool with pending_groups != 0 is on exactly one of: its home's list `pending`, its home's lists to_fold and to_wait, or in
   the hands of the thread that made them != 0, or of one that passes it on. */
#ifndef BXR_REMOTE_H
#define BXR_REMOTE_H

#include "domain.h"

/* Records the deletion of r. Needs r owned; no lock. */
BXR_INTERNAL void bxr_remote_delete(boxroot r);

/* The same on a domain that uses the library: needs the lock of `me`, and that none of its slots is being visited. */
BXR_INTERNAL void bxr_remote_delete_by(bxr_domain *me, boxroot r);

/* The same if that is quickly done, since r is a neighbour of the last one: false otherwise. Any root may be deleted so. */
static inline bool bxr_remote_delete_neighbour(bxr_domain *me, boxroot r)
{
  size_t i = ((uintptr_t)r & (BXR_POOL_SIZE - 1)) / sizeof(uintptr_t);
  if (((uintptr_t)r & ~(uintptr_t)(64 * sizeof(uintptr_t) - 1)) != me->out_group) return false;
  me->out_bits |= (uint64_t)1 << (i % 64);
  return true;
}

/* Passes on what bxr_remote_delete_by has collected. Needs the lock of `me`. */
BXR_INTERNAL void bxr_remote_flush(bxr_domain *me);

/* Carries out deletions that are pending at d, until they are done or cost more than `budget`: a unit is about a slot's worth, some
   nanoseconds. What must wait for the marker is left. Needs the lock of d, and that none of its slots is being visited. The rest of the
   budget. */
#define BXR_FOLD_ALL INT64_MAX
#define BXR_FOLD_IN_PAUSE 100000  /* half a millisecond */
#define BXR_FOLD_IN_CREATE 6000   /* some ten microseconds */
BXR_INTERNAL int64_t bxr_remote_fold(bxr_domain *d, int64_t budget);

/* Carries out the deletions of a pool that waits for the marker, after darkening what it holds. False when there is none. Cost: a look at
   each value of a pool. */
BXR_INTERNAL bool bxr_remote_fold_waiting(bxr_domain *d);

/* Passes the pools on the pending list of d on to the homes that they now have. */
BXR_INTERNAL void bxr_remote_forward(bxr_domain *d);

/* The same for those on its queues as well. Needs the lock of d. */
BXR_INTERNAL void bxr_remote_forward_all(bxr_domain *d);

/* Forgets the pending deletions of p: its roots are void. Nobody else may touch it any more. */
BXR_INTERNAL void bxr_remote_forget(bxr_pool *p);

#endif
