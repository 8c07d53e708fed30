/* SPDX-License-Identifier: MIT */
/* Statistics while the program runs: on a signal, at intervals.

   The handler of the signal only wakes a thread of the library, which takes the locks that printing needs. That thread
   is no thread of OCaml's, blocks all signals, and exists only if one of the two was asked for. A child after fork gets
   one of its own. */
#ifndef OH_WATCH_H
#define OH_WATCH_H

#include "base.h"

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
