/* SPDX-License-Identifier: MIT */
/* Counters of the flavour that counts words in the marking loop. */
#ifndef OH_MARKING_H
#define OH_MARKING_H
#include <stddef.h>

struct oh_marking_counters { size_t seen, immediate, young, statics, foreign, lines; };
extern struct oh_marking_counters oh_marking; /* stats.c */

static inline void oh_marking_add(size_t *counter, size_t n) { (void)__atomic_fetch_add(counter, n, __ATOMIC_RELAXED); }

#endif
