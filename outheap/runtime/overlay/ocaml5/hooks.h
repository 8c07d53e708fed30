/* SPDX-License-Identifier: MIT */
/* What takes the place of the runtime's own functions for minor heaps. */
#ifndef OH_HOOKS_H
#define OH_HOOKS_H

#include <stdint.h>

/* Before the first value exists. */
void oh_hooks_start(void);

/* The addresses for all domains. The runtime asks for them when it starts, and again for larger minor heaps. In the
   zone nothing is reserved before a domain commits its part. */
void *oh_hooks_reserve_minor_heaps(uintptr_t bytes);
void oh_hooks_release_minor_heaps(void *start, uintptr_t bytes);

/* One minor heap. */
void *oh_hooks_commit_minor_heap(void *start, uintptr_t bytes);
void oh_hooks_purge_minor_heap(void *start, uintptr_t bytes);

#endif
