/* SPDX-License-Identifier: MIT */
/* Address space: the zone, which is set apart for the heap, and the pieces that each space gets. */
#ifndef OH_ADDRESS_SPACE_H
#define OH_ADDRESS_SPACE_H

#include "page.h"

/* --- the zone ----------------------------------------------------------------------------------------------------- */

/* The zone: the part of the address space that is set apart for the heap, far from where the system places what others
   map.

   A process has addresses below 2^w; w = 47 on x86-64 Linux. Programs are placed at the bottom or around two thirds,
   and the system maps from the top. The zone begins at 2^(w-2), plus a random distance below 2^(w-4) so that addresses
   cannot be guessed. It has parts of 2^(w-6) bytes: 2 TB. */

void oh_zone_start(void);
bool oh_zone_usable(void);          /* not before oh_zone_start, nor under tools that keep addresses for themselves */
uintptr_t oh_zone_part(int i);      /* where the ith part begins */
size_t oh_zone_part_size(void);
/* Where regions are placed: [2^44, 2^45), the same in every process, so that files can be mapped at the addresses that
   they were written for. False: this address space is too small for it. */
#define OH_ZONE_REGIONS_LOG 44
bool oh_zone_regions(uintptr_t *begin, uintptr_t *end);
uintptr_t oh_zone_limit(void);      /* the heap is placed below it, also outside of the zone */

/* --- address space for the spaces --------------------------------------------------------------------------------- */

/* Address space for the spaces. It is reserved in chunks, claimed in the table for a space, and never returned.

   Each space has its own part of the zone, where its chunks follow each other. What finds no place there goes
   to the part of another space, or where the system chooses, which is counted (OH_NOTICE_ZONE). Chunks of the
   stock are preferred: blocks take them from the high end and all other spaces from the low end, so that both
   find neighbours.

   Where address space is limited a chunk may be short: the whole chunk is claimed, but only its beginning is reserved,
   and the rest later when it can be had.

   A chunk that turns out to be tainted is left alone. If it was reserved before that was seen, it stays reserved and
   unused. */

struct oh_reserve_piece { uintptr_t base; size_t bytes; };

/* Once, before anything else here; by oh_start. */
void oh_reserve_start(void);

/* Address space that belongs to this space from now on, in multiples of OH_PAGE, with records in page.h. If possible it
   is one piece of `bytes`, or `tail` bytes less when the piece begins at the end of the space's last piece
   (oh_reserve_end); but the piece is smaller when a chunk turns out to be tainted: so ask again. The caller holds the
   lock of the space. False: errno = ENOMEM. */
bool oh_reserve_chunks(enum oh_space_id, size_t bytes, size_t tail, struct oh_reserve_piece *got);

/* Addresses for the space, of which none is reserved: chunks in its part of the zone where nothing is mapped now. 0:
   the zone cannot be had, or has no room. They are never returned. */
uintptr_t oh_reserve_range(enum oh_space_id, size_t bytes);

/* Reserves a part, cut at large pages, of such a range, with records in page.h. False: errno = ENOMEM. */
bool oh_reserve_part(enum oh_space_id, uintptr_t at, size_t bytes);

/* Where the last piece of the space that is not from the stock ends, 0 if there is none: the next one begins there if
   it can. */
uintptr_t oh_reserve_end(enum oh_space_id);

/* Adds to the stock. 0, ENOMEM (nothing is added), EINVAL. */
int oh_reserve_ahead(size_t bytes);

struct oh_reserve_counters { size_t chunks, tainted, reservations, reserved, ahead; };
/* OH_SPACES: the stock, and the sum of all spaces */
void oh_reserve_count(enum oh_space_id, struct oh_reserve_counters *result);
void oh_reserve_validate(void);

/* For start.c. */
void oh_reserve_lock(void);
void oh_reserve_unlock(void);

#endif
