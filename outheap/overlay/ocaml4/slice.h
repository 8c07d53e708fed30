/* SPDX-License-Identifier: MIT */
/* How long slices of the major collector take, for minor heaps that adapt their size (minor_gc.c). */
#ifndef OH_SLICE_H
#define OH_SLICE_H

#include <stdint.h>

/* Who wants to know, in nanoseconds of processor time; NULL: nobody, and no time is taken. */
extern void (*oh_slice_took)(uint64_t nanoseconds);

void oh_slice_begin(void);
void oh_slice_end(void);

#endif
