/* SPDX-License-Identifier: MIT */
/* The report on naked pointers. */
#ifndef OH_REPORT_H
#define OH_REPORT_H

#include "atomic.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern bool oh_report_on;
static inline bool oh_asking(void) { return oh_load_seq_cst(&oh_report_on); }

/* Counts a pointer to foreign memory, and passes it to the sampler when it is its turn. Any thread; takes no lock. */
void oh_report_met(uintptr_t address);

/* The setting: prints every nth to standard error. */
void oh_report_print(size_t every);
size_t oh_report_count(void);

/* In the child of a fork: no other thread is in a sampler. */
void oh_report_forked(void);

#endif
