/* SPDX-License-Identifier: MIT */
/* Statistics while the program runs: on a signal, at intervals.

   The handler of the signal only wakes a thread of the library, which takes the locks that printing needs. That thread
   is no thread of OCaml's, blocks all signals, and exists only if one of the two was asked for. A child after fork gets
   one of its own. */
#ifndef OH_WATCH_H
#define OH_WATCH_H

/* Once, by oh_start: opens the file for statistics, installs the handler and starts the thread, as the settings say. */
void oh_watch_start(void);

/* Where statistics go: the setting stats_to. */
int oh_watch_output(void);

/* For fork.c, in the child. */
void oh_watch_forked(void);

#endif
