/* SPDX-License-Identifier: MIT */
/* The depot: the pools that belong to no domain, in all segments. Domains take pools from any segment and return them
   when they are empty, so that the number of segments follows the number of pools in use, whatever domains came and
   went. Any thread may call these functions.

   Nothing here relies on purged memory reading as zeroes: the system may refuse to take it (locked memory).

   Invariant: unused != 0 => the segment's bit in the directory is set, or the thread that made it != 0 is about to set
   it. */
#ifndef BXR_DEPOT_H
#define BXR_DEPOT_H

#include "pool.h"

/* Takes a pool from any segment, or from a new one, and formats it. The caller owns it. Needs no lock.
   NULL and errno == ENOMEM on failure. Cost: some atomic operations; four system calls for a new segment. */
BXR_INTERNAL bxr_pool *bxr_depot_claim(void);

/* Returns the n pools, which must be empty and the caller's. Their memory is purged, but for some that the next claims
   find with their memory, unless `all` is true. Sorts the array. The result is the number of those
   whose memory was purged. Needs no lock.
   Cost: a system call for each run of neighbours. */
#define BXR_MOST_RETURNED_AT_ONCE 64
BXR_INTERNAL unsigned bxr_depot_return(bxr_pool **pools, unsigned n, bool all);

/* Purges the memory of all pools in the depot. Needs no lock. Cost: a step per segment. */
BXR_INTERNAL void bxr_depot_trim(void);

/* Gives all segments back to the system. Nobody may use a root, or what held one, any more. */
BXR_INTERNAL void bxr_depot_release(void);

/* Whether p is of this depot, and not of another copy of the library. Cost: three loads. */
BXR_INTERNAL bool bxr_depot_has(bxr_pool *p);

/* Pool i of all that there is address space for, unless it is in the depot; then NULL. False: there are no more. */
BXR_INTERNAL bool bxr_depot_look(uint64_t i, bxr_pool **p);

/* Address space reserved so far, in bytes. */
BXR_INTERNAL uint64_t bxr_depot_reserved_bytes(void);

#endif
