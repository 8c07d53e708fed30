/* SPDX-License-Identifier: MIT */
/* What takes the place of the runtime's own functions: chunks of the heap, minor heaps, the table of pages (declared by
   the runtime's headers). */
#ifndef OH_HOOKS_H
#define OH_HOOKS_H

#include <stdint.h>

void *oh_hooks_alloc_minor_heap(uintptr_t bytes);
void oh_hooks_free_minor_heap(void *start, uintptr_t bytes);

/* How long slices of the major collector take, for minor heaps that adapt their size (minor_gc.c): what is called with
   nanoseconds of processor time when one ends; NULL: nothing, and no time is taken. */
extern void (*oh_hooks_slice_took)(uint64_t nanoseconds);
void oh_hooks_begin_slice(void);
void oh_hooks_end_slice(void);

/* Purges the free memory of the major heap. */
void oh_hooks_trim(void);

#endif
