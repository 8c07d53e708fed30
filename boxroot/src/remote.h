/* SPDX-License-Identifier: MIT */
/* Deletion from elsewhere: by a thread without the owner's domain lock, or by the owner while its slots are being visited.

   The slot keeps its value until the owner folds the deletion back, so that no scan and no marker is ever disturbed. Nobody
   waits for anybody. Bits of pending deletions form a hierarchy, and whoever finds a level empty is responsible for the next:

     word of the region's bitmap, one bit per slot  →  pool->pending_groups, one bit per word  →  list home->pending, of pools

   The owner goes the other way and reaches a word only by way of its group's bit, which is set by the one who found the word
   empty. A pool can therefore not become empty, let alone be given back, before the last thread that still has to touch it has done
   so. A deletion costs one atomic operation, and one more in 64 when neighbours are deleted in a row.

   A domain that deletes roots of another collects bits of one word and sets them together (bxr_remote_delete_by): neighbours deleted
   in a row cost next to nothing. They wait for the next collection at the latest, when the domain is bound to come by.
   Idea: a bitmap of pending deletions, from the paper on Boxroot (footnote 9). */
#ifndef BXR_REMOTE_H
#define BXR_REMOTE_H

#include "domain.h"

/* Records the deletion of r. Needs r owned; no lock. */
void bxr_remote_delete(boxroot r);

/* The same on a domain that uses the library: needs the lock of `me`, and that none of its slots is being visited. */
void bxr_remote_delete_by(bxr_domain *me, boxroot r);

/* Passes on what bxr_remote_delete_by has collected. Needs the lock of `me`. */
void bxr_remote_flush(bxr_domain *me);

/* Carries out the deletions that are pending at d. Needs the lock of d, and that none of its slots is being visited. */
void bxr_remote_fold(bxr_domain *d);

/* Passes the pools on the pending list of d on to the homes that their regions now have. */
void bxr_remote_forward(bxr_domain *d);

#endif
