/* SPDX-License-Identifier: MIT */
/* The operating system: address space and memory. The only file that calls mmap and madvise. Knows nothing of the rest. */
#ifndef OH_OS_H
#define OH_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Inaccessible address space at `base` exactly (aligned to system pages); false if something lies there, or it cannot be had (errno: ENOMEM
   when a limit is reached, otherwise something else). */
bool oh_os_reserve_at(uintptr_t base, size_t bytes);

/* Inaccessible address space anywhere below `limit`, aligned; 0 if there is none. */
uintptr_t oh_os_reserve(size_t bytes, size_t alignment, uintptr_t limit);

/* Gives reserved address space back; only for what was never used. */
void oh_os_release(uintptr_t base, size_t bytes);

/* Would the system make that much memory accessible in addition, in one piece? A guess. */
bool oh_os_would_commit(size_t bytes);

bool oh_os_commit(void *start, size_t bytes);  /* makes it accessible; false: no memory, nothing changed */
bool oh_os_discard(void *start, size_t bytes); /* gives the memory back, keeps it accessible, filled with zeroes; false: could not */
/* Huge pages, or none of them: advice only. Does nothing, and says false, when the system's own setting makes it pointless. */
bool oh_os_huge(void *start, size_t bytes, bool wanted);

/* Memory for our own records, from the system directly, never given back: malloc may be the caller's caller. Filled with zeroes, aligned to
   cache lines. NULL if there is none. */
void *oh_os_metadata(size_t bytes);

size_t oh_os_page(void);          /* size of a system page */
uintptr_t oh_os_random(void);     /* differs from process to process, unless the process is run without randomisation of addresses */
size_t oh_os_address_limit(void); /* the process' limit on its address space; SIZE_MAX: none */

/* Tests: the nth next call of a kind that can fail does; 0: none; negative: all. Only where OH_FAULTS is defined. */
#ifdef OH_FAULTS
extern long oh_os_fail_after;
extern void (*oh_os_reserved)(uintptr_t base, size_t bytes); /* called when address space was reserved, before anybody knows of it; NULL: none */
#endif

#endif
