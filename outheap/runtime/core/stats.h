/* SPDX-License-Identifier: MIT */
/* Statistics: all counters together. */
#ifndef OH_STATS_H
#define OH_STATS_H

#include "outheap.h"

void oh_stats_get(struct outheap_statistics *result);

/* Prints them, and the resident memory of each space, one line each: `outheap: NAME VALUE`; before them the title, if
   there is one. Takes locks, so it is not for signal handlers; allocates nothing. */
void oh_stats_print(int descriptor, char const *title);

/* What the marker has read since the last call, as a line `outheap: slice SEEN STATIC FOREIGN LINES`; nothing if that
   is nothing. Any thread. */
void oh_stats_slice(int descriptor);

#endif
