/* SPDX-License-Identifier: MIT */
/* Deletion. The thread that has the lock of the pool's domain puts the slot on the free list. All others record the
   deletion, which the owner of the pool carries out later (drain.h): a remote deletion. So does the owner while the
   slots are being visited, and for slots that the marker is to read first.

   The slot keeps its value until the owner carries the deletion out, so that no scan and no marker is ever disturbed.
   No thread waits for another. Bits of pending deletions form a hierarchy, and the thread that finds a level empty is
   responsible for the next:

     word of the segment's bitmap, one bit per slot  →  pool->pending_groups, one bit per word
                                                     →  list home->pending, of pools

   The owner goes the other way and reaches a word only by way of its group's bit, which is set by the thread that found
   the word empty. A pool can therefore not become empty, let alone be returned, before the last thread that still has
   to touch it has done so. A deletion costs one atomic operation, and one more in 64 when neighbours are deleted in a
   row.

   A domain that defers deletions collects a batch, the bits of one word, and sets them together: neighbours deleted
   in a row cost next to nothing. They wait for the domain's next collection at the latest.
   Idea: a bitmap of pending deletions, from the paper on Boxroot (footnote 9).

   Invariant: a pool with pending_groups != 0 is on exactly one of its home's lists `pending`, `to_drain` and `waiting`;
   or the thread that made them != 0, or one that passes the pool on, is about to put it there. */
#ifndef BXR_DELETE_H
#define BXR_DELETE_H

#include "domain.h"

/* Deletes a root, wide or not, as boxroot_delete does: with its inline path. */
BXR_INTERNAL void bxr_delete(boxroot r);

/* Without the inline path. In a release build boxroot/inline.h declares it. In the checked build all calls take it, and
   it is internal: another copy of the library cannot provide its own for it. */
#if BOXROOT_DEBUG
BXR_INTERNAL void bxr_delete_slow(boxroot r);
#endif

/* --- remote deletions --------------------------------------------------------------------------------------------- */

/* Records the deletion of r. Needs r owned; no lock. */
BXR_INTERNAL void bxr_remote_delete(boxroot r);

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

/* Puts p, which has pending deletions and is on no list of such pools, on the list of its home. */
BXR_INTERNAL void bxr_remote_enqueue(bxr_pool *p);

/* Passes the pools on the pending list of d on to the homes that they now have. */
BXR_INTERNAL void bxr_remote_forward(bxr_domain *d);

/* The same for those on its lists `to_drain` and `waiting` as well. Needs the lock of d. */
BXR_INTERNAL void bxr_remote_forward_all(bxr_domain *d);

/* Forgets the pending deletions of p, whose roots have been torn down. No other thread may touch p any more. */
BXR_INTERNAL void bxr_remote_discard(bxr_pool *p);

#endif
