/* SPDX-License-Identifier: MIT */
#ifndef OH_STATS_H
#define OH_STATS_H

#include <stddef.h>

/* Prints all statistics to standard error, one line each: `outheap: NAME VALUE`. */
void oh_stats_print(void);

size_t oh_met_unknown(void); /* table.c */

#endif
