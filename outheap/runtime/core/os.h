/* SPDX-License-Identifier: MIT */
/* The operating system: address space and memory; the allocator's own records. os.c is the only file of the library
   that calls mmap and madvise; with OH_SBRK (base.h) it does not, and memory comes from os_sbrk.c. */
#ifndef OH_OS_H
#define OH_OS_H

#include "base.h"
#include "os_faults.h" /* for tests */
#include <stdbool.h>

/* Inaccessible address space exactly at `base` (aligned to system pages). False if something lies there, or if the
   system refuses (errno: ENOMEM when a limit is reached, otherwise something else). */
bool oh_os_reserve_at(uintptr_t base, size_t bytes);

/* Inaccessible address space anywhere below `limit`, aligned; 0 if there is none. */
uintptr_t oh_os_reserve(size_t bytes, size_t alignment, uintptr_t limit);

/* Returns reserved address space to the system; only if it was never used. */
void oh_os_release(uintptr_t base, size_t bytes);

/* Would the system commit that much more memory in one piece? A guess. */
bool oh_os_would_commit(size_t bytes);

bool oh_os_commit(void *start, size_t bytes); /* makes it accessible; false: no memory, nothing changed */
/* returns the memory to the system; it stays accessible and reads as zeroes; false: refused */
bool oh_os_purge(void *start, size_t bytes);

/* Does the system count what a process may write to against a limit, whether it is touched or not
   (vm.overcommit_memory=2)? Then memory that is purged stays charged. */
bool oh_os_is_strict(void);
/* Makes it inaccessible again: what oh_os_reserve_at has left. So it is not charged either; advice is forgotten. False:
   refused, and nothing changed. */
bool oh_os_uncommit(void *start, size_t bytes);

/* Advises for or against huge pages. Does nothing and returns false when the system's own setting makes the advice
   pointless. */
bool oh_os_advise_huge(void *start, size_t bytes, bool wanted);
/* Takes back what the call above asked for. False: refused, as the number of mappings is limited. */
bool oh_os_refuse_huge(void *start, size_t bytes);

/* Readable and writable memory, filled with zeroes, anywhere; 0: none. */
uintptr_t oh_os_map(size_t bytes);

/* The part of the program or of a shared library that holds the address, in whole words, and that can be read as long
   as it is loaded. False if there is none. */
bool oh_os_image(uintptr_t address, uintptr_t *begin, uintptr_t *end);

/* malloc gives back what it keeps, where the C library has a function for that. Cost: a system call for each piece,
   with a lock of malloc's. */
void oh_os_trim_malloc(void);

/* The size of a system page in bytes. */
size_t oh_os_page_size(void);
/* All memory of the machine; SIZE_MAX: not known. */
size_t oh_os_physical(void);
/* The most bytes that the process ever had in memory, files too; 0: not known. Cost: a system call. */
size_t oh_os_peak(void);
/* The number of this process, and of its parent; those of wasm have none. */
long oh_os_process(void);
long oh_os_parent(void);
/* Has this process children, also such as have ended and that nobody has waited for? Nothing is waited for. */
bool oh_os_has_children(void);
/* Has this program more rights than its caller (setuid, setgid, capabilities)? */
bool oh_os_is_privileged(void);
/* Lets other threads run. */
void oh_os_yield(void);
/* On how many processors the calling thread may run; at least 1. Cost: a system call. */
unsigned oh_os_processors(void);
/* An address in the process's first stack, or in the caller's where the system does not tell. */
uintptr_t oh_os_stack(void);
/* Bytes that each thread has of its own, in its stack: the thread-local variables of what is loaded. */
size_t oh_os_thread_local(void);
/* A number that differs between processes, unless the process runs without address space randomisation. */
uintptr_t oh_os_random(void);
/* The limit on the process's address space (RLIMIT_AS); SIZE_MAX: there is none. */
size_t oh_os_address_limit(void);

/* With OH_SBRK only. The end of the area of memory, which is never below what it was when the program started. */
#if OH_SBRK
uintptr_t oh_os_top(void);
#endif

/* For start.c, by oh_metadata_lock: what the files of this header protect by locks of their own. */
#if OH_SBRK
void oh_os_lock(void);
void oh_os_unlock(void);
#else
static inline void oh_os_lock(void) {}
static inline void oh_os_unlock(void) {}
#endif

/* --- memory for records ------------------------------------------------------------------------------------------- */

/* Memory for the allocator's own records. It comes from the system directly, since malloc may itself be built on this
   allocator's callers. It is never given back. */

/* Filled with zeroes, aligned to cache lines; NULL if there is no memory. Any thread. */
void *oh_metadata_alloc(size_t bytes);

/* For start.c. */
void oh_metadata_lock(void);
void oh_metadata_unlock(void);

#endif
