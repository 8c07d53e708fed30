/* SPDX-License-Identifier: MIT */
/* Statistics: all counters together. */
#ifndef OH_STATS_H
#define OH_STATS_H

#include "outheap.h"

void oh_stats_get(struct outheap_statistics *result);

/* Prints them to standard error, one line each: `outheap: NAME VALUE`. */
void oh_stats_print(void);

#endif
