/* SPDX-License-Identifier: MIT */
/* Statistics: the counters of the marking loop, the memory of each space as the system sees it, all counters together,
   and their printing: at exit, on a signal, at intervals. */
#ifndef OH_STATS_H
#define OH_STATS_H

#include "outheap.h"
#include "page.h"

/* --- counters of the marking loop --------------------------------------------------------------------------------- */

/* Counters of the marking loop, in the flavour that has them (OH_COUNT). Their names are those of
   outheap_statistics. */

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

/* --- resident memory ---------------------------------------------------------------------------------------------- */

/* Resident memory and huge pages of each space, as the system accounts for them. */

struct oh_usage { size_t resident, huge; }; /* bytes; `huge`: of these, in huge pages */

/* One for each space, and at OH_SPACES one for the rest of the process. A mapping counts for the space that it begins
   in; pieces of different spaces make one mapping only if they touch, which those in the zone do not. Takes no lock and
   allocates nothing. False: the system does not tell. Cost: the system looks at all page tables of the process, some
   milliseconds for each gigabyte in small pages. */
bool oh_usage_get(struct oh_usage result[OH_SPACES + 1]);

/* --- all counters ------------------------------------------------------------------------------------------------- */

/* Statistics: all counters together. */

void oh_stats_get(struct outheap_statistics *result);

/* Prints them, and the resident memory of each space, one line each: `outheap: NAME VALUE`; before them the title, if
   there is one. Takes locks, so it is not for signal handlers; allocates nothing. */
void oh_stats_print(int descriptor, char const *title);

/* What the marker has read since the last call, as a line `outheap: slice SEEN STATIC FOREIGN LINES`; nothing if that
   is nothing. Any thread. */
void oh_stats_slice(int descriptor);

/* --- statistics while the program runs ---------------------------------------------------------------------------- */

/* Statistics while the program runs: on a signal, at intervals.

   The handler of the signal only wakes a thread of the library, which takes the locks that printing needs. That thread
   is no thread of OCaml's, blocks all signals, and exists only if one of the two was asked for. A child after fork gets
   one of its own. */

/* Once, by oh_start: opens the file for statistics, installs the handler and starts the thread, as the settings say. */
void oh_watch_start(void);

/* Where statistics go: the setting stats.to. Asked before each writing, since the program may have closed the
   descriptor, and opened something else by the same number: then the file is opened again. -1: nowhere. Any thread. */
int oh_watch_output(void);

/* Ends the thread for the rest of the process: no more statistics on a signal or at intervals. Any thread. It waits for
   statistics that are being printed. */
void oh_watch_stop(void);

/* For start.c, in the child. */
void oh_watch_forked(void);

#endif
