/* SPDX-License-Identifier: MIT */
/* Counters of the marking loop, in the flavour that has them (OH_COUNT). Their names are those of
   outheap_statistics. */
#ifndef OH_MARKING_H
#define OH_MARKING_H

#include "atomic.h"
#include <stddef.h>

struct oh_marking_counters {
  size_t words_seen, words_immediate, words_young, words_static, words_foreign, lines_saved;
};
extern struct oh_marking_counters oh_marking;

static inline void oh_marking_count(size_t *counter) { (void)oh_fetch_add_relaxed(counter, 1); }

#endif
