/* SPDX-License-Identifier: MIT */
/* The report on naked pointers: counts the pointers to foreign memory that marking finds, and shows samples of them. */
#ifndef OH_REPORT_H
#define OH_REPORT_H

#include <stddef.h>
#include <stdint.h>

/* Starts the report (`every` > 0), changes it, or ends it (`every` = 0): see outheap_report in outheap.h. Result:
   pointers counted so far. */
size_t oh_report_set(size_t every, void (*sample)(void const *pointer, void const *data), void const *data);

/* A sampler that prints. */
void oh_report_print(void const *pointer, void const *data);

/* Counts a pointer to foreign memory, and passes every nth to the sampler. Any thread; takes no lock. */
void oh_report_pointer(uintptr_t address);

size_t oh_report_count(void);

/* For fork.c. In the child no other thread is in a sampler. */
void oh_report_lock(void);
void oh_report_unlock(void);
void oh_report_forked(void);

#endif
