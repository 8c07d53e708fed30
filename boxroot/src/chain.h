/* SPDX-License-Identifier: MIT */
/* The chain of pools that OCaml 5's marker is given at the start of a major cycle. The marker reads it from its first
   pool, in slices, within its own budget. The library shortens it from the other end: it darkens the values of the last
   pool and cuts the pool off, so that the marker never reads it. That is the same work, and it is done outside the
   marker's budget, as a scan of all roots at the start of the cycle would do it (runtime_ocaml5_pace.c).

   The two never meet in a pool: each runs on the domain's own thread, or for it while the world is stopped; the marker
   opens a pool by marking its header, so the header tells. A pool that is not open yet can also be taken out of the
   middle of the chain.

   Invariant: while the domain is marking, p->earlier->slots[p->earlier->shown] leads to p for each pool p of the chain
   but the first; the pools that the marker has opened are those at its beginning. */
#ifndef BXR_CHAIN_H
#define BXR_CHAIN_H

#include "domain.h"

/* Puts p, as it is now, in front of the chain that begins with `first` (NULL: an empty one), and into the snapshot. */
BXR_INTERNAL void bxr_chain_add(bxr_domain *d, bxr_pool *p, bxr_pool *first);

/* Does the marker's work on p, so that p needs no barrier, and takes it out of the chain if the marker has not opened
   it. Needs a pool for which bxr_barrier_needed is true. Cost: a look at each value. */
BXR_INTERNAL void bxr_chain_darken(bxr_domain *d, bxr_pool *p);

/* Darkens and cuts off pools at the end of the chain: `pools` of them at most, and no more once `pushes` entries,
   about, have been put on the mark stack, which is emptied only in the marker's slices. The number of entries put
   there. */
BXR_INTERNAL uint64_t bxr_chain_shorten(bxr_domain *d, uint64_t pools, uint64_t pushes);

#endif
