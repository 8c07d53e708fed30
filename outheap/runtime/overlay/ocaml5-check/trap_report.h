/* SPDX-License-Identifier: MIT */
/* Reports of faults: which line, what the value was, which collection left it, who still holds it, and what to do. */
#ifndef OH_TRAP_REPORT_H
#define OH_TRAP_REPORT_H

#include "prelude.h"
#include <stdbool.h>

/* Where pointers in free or new blocks lead; 0 before oh_trap_start. */
extern uintptr_t oh_trap_report_nowhere_old, oh_trap_report_nowhere_young;

/* Once, before the first value. `forced`: how many collections the trap has asked for. */
void oh_trap_report_start(uintnat (*forced)(void));

/* Puts the handler of SIGSEGV in front of one that the runtime or the program has installed since. */
void oh_trap_report_install(void);

/* Have local roots been left by a function that has returned? Then its frame lies below the caller's. Cost: a
   comparison. */
void oh_trap_report_frames(caml_domain_state *);

/* The kernel has refused an address. */
void oh_trap_report_refused(void);

/* A fault that the caller describes in a sentence without its end; `advice` is another one. With the domain lock or
   without. */
void oh_trap_report_fault(char const *what, void const *address, char const *advice);

#endif
