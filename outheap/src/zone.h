/* SPDX-License-Identifier: MIT */
/* The part of the address space that is set apart for the heap.

   A process has addresses below 2^w, w = 47 on x86-64 Linux. Programs lie at the bottom or around two thirds, what the system maps at the top. The zone begins at
   2^(w-2), plus a random distance below 2^(w-4) so that addresses cannot be guessed, and has parts of 2^(w-6): 2 TB. */
#ifndef OH_ZONE_H
#define OH_ZONE_H

#include "config.h"
#include <stdbool.h>

void oh_zone_start(uintptr_t base); /* 0: as said above */
bool oh_zone_usable(void);          /* some tools keep addresses to themselves */
uintptr_t oh_zone_part(int i);      /* where the ith part begins */
uintptr_t oh_zone_limit(void);      /* what the heap lies below, everywhere */

#endif
