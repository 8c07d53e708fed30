/* SPDX-License-Identifier: MIT */
/* Where the heap comes to lie. Address space is reserved in chunks, claimed in the table for a space, and never given back.

   A zone is set apart, far from where the system puts what others map: so memory that is foreign today is not heap tomorrow. Each space has its own
   part of the zone, where its chunks follow each other. Where the zone cannot be had, the system chooses.

   The stock is address space reserved ahead for all spaces (outheap_reserve). Chunks from it are preferred; blocks take them from the high end, all others from the
   low end, so that both find neighbours.

   Where address space is limited a chunk may be short: claimed as a whole, but only its beginning reserved, and the rest later when it can be had.

   A chunk that was tainted when it was to be claimed is left alone; if it was reserved before that was seen, it stays so, and out of use. */
#ifndef OH_RESERVE_H
#define OH_RESERVE_H

#include "space.h"
#include "table.h"

struct oh_piece { uintptr_t base; size_t bytes; };

/* Once, before anything else here; by oh_start. */
void oh_reserve_start(uintptr_t base);

/* Address space that belongs to this space from now on, in multiples of OH_PAGE, with records in pages.h. If possible as many bytes as asked for, in one piece (or `tail` bytes
   less, when the piece begins at the space's end, see below); but the piece may be smaller when chunks turn out to be tainted: so ask again. The space is locked by the caller.
   False: errno = ENOMEM. */
bool oh_reserve(enum oh_space_id, size_t bytes, size_t tail, struct oh_piece *got);

/* Where the last piece of the space that is not from the stock ends, 0 if there is none: the next one begins there if it can. */
uintptr_t oh_reserve_end(enum oh_space_id);

/* Adds to the stock. 0, ENOMEM (nothing is added), EINVAL. */
int oh_reserve_ahead(size_t bytes);

struct oh_reserve_counters { size_t chunks, tainted, reservations, reserved, ahead; };
void oh_reserve_count(enum oh_space_id, struct oh_reserve_counters *result); /* OH_SPACES: the stock, and all chunks */
void oh_reserve_validate(void);

#endif
