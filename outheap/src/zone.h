/* SPDX-License-Identifier: MIT */
/* The zone: the part of the address space that is set apart for the heap, far from where the system places what others
   map.

   A process has addresses below 2^w; w = 47 on x86-64 Linux. Programs are placed at the bottom or around two thirds,
   and the system maps from the top. The zone begins at 2^(w-2), plus a random distance below 2^(w-4) so that addresses
   cannot be guessed. It has parts of 2^(w-6) bytes: 2 TB. */
#ifndef OH_ZONE_H
#define OH_ZONE_H

#include "config.h"
#include <stdbool.h>

void oh_zone_start(uintptr_t base); /* 0: the place described above */
bool oh_zone_usable(void);          /* not before oh_zone_start, nor under tools that keep addresses for themselves */
uintptr_t oh_zone_part(int i);      /* where the ith part begins */
size_t oh_zone_part_size(void);
/* Where regions are placed: [2^44, 2^45), the same in every process, so that files can be mapped at the addresses that
   they were written for. False: this address space is too small for it. */
#define OH_ZONE_REGIONS_LOG 44
bool oh_zone_regions(uintptr_t *begin, uintptr_t *end);
uintptr_t oh_zone_limit(void);      /* the heap is placed below it, also outside of the zone */

#endif
