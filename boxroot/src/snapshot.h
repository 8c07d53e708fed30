/* SPDX-License-Identifier: MIT */
/* The snapshot that OCaml 5's marker reads: a chain of pools, which it is given at the start of a major cycle. The
   marker reads the chain from its first pool, in slices, within its own budget. The library shortens it from the other
   end: it darkens the values of the last pool and cuts the pool off, so that the marker never reads it. That is the
   same work, and it is done outside the marker's budget, as a scan of all roots at the start of the cycle would do it
   (runtime/ocaml5_marker.c).

   The two never meet in a pool: each runs on the domain's own thread, or for it while the world is stopped; the marker
   opens a pool by marking its header, so the header tells. A pool that is not open yet can also be taken out of the
   middle of the chain.

   Invariant: while the domain is marking, p->chain_prev->slots[p->chain_prev->marker_limit] leads to p for each pool p
   of the chain but the first; the pools that the marker has opened are those at its beginning. */
#ifndef BXR_SNAPSHOT_H
#define BXR_SNAPSHOT_H

#include "domain.h"

/* Puts the pools of d's list `list`, as they are now, into the snapshot, in front of the chain that begins with `first`
   (NULL: an empty one). The result is the chain's new first pool. Adds the number of their roots, which is an upper
   bound, to *roots. Cost: a step per pool. */
BXR_INTERNAL bxr_pool *bxr_snapshot_add(bxr_domain *d, bxr_barrier b, int list, bxr_pool *first, uint64_t *roots);

/* Does the marker's work on p, so that p needs no barrier, and takes it out of the chain if the marker has not opened
   it. Needs a pool for which bxr_pool_guarded is true. bxr_owners_publish has to follow. Cost: a look at each value. */
BXR_INTERNAL void bxr_snapshot_darken(bxr_domain *d, bxr_pool *p);

/* Does a share of the marker's work: darkens and cuts off pools at the end of the chain, *pools at most, which are
   subtracted, and no more once *pushed, to which it adds, has reached `pushes`: about the entries on the mark stack. */
BXR_INTERNAL void bxr_snapshot_advance(bxr_domain *d, uint64_t *pools, uint64_t *pushed, uint64_t pushes);

#endif
