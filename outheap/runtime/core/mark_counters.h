/* SPDX-License-Identifier: MIT */
/* Counters of the marking loop, in the flavour that has them (OH_COUNT). Their names are those of
   outheap_statistics. */
#ifndef OH_MARK_COUNTERS_H
#define OH_MARK_COUNTERS_H

#include "base.h"

struct oh_mark_counters {
  size_t words_seen, words_immediate, words_young, words_static, words_foreign, lines_saved;
};
extern struct oh_mark_counters oh_mark_counters;

/* Counts a word that the marker reads; and one of these that is a pointer but not to be followed. Distinct cache lines
   are estimated with a small direct-mapped filter for each thread, which forgets: the number is an upper bound of
   distinct lines, and a lower bound of accesses. */
#if OH_COUNT
void oh_mark_counters_count_word(uintptr_t v);
void oh_mark_counters_count_other(uintptr_t v);
#endif

#endif
