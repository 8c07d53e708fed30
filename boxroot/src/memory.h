/* SPDX-License-Identifier: MIT */
/* Address space and memory from the operating system, or from Outheap where its runtime is linked. Knows nothing of
   OCaml. */
#ifndef BXR_MEMORY_H
#define BXR_MEMORY_H

#include "base.h"

/* `size` bytes of zeroes, aligned on `size` (a power of two and a multiple of the page size). NULL and errno == ENOMEM
   on failure.
   Cost: one to four system calls. */
BXR_INTERNAL void *bxr_memory_reserve(size_t size);

/* Purges [start, start + size): bounds on page boundaries of the system. False when the system refuses (locked memory);
   the range holds what it held or zeroes then, zeroes otherwise. */
BXR_INTERNAL bool bxr_memory_purge(void *start, size_t size);

/* The size of the system's pages. Cost: a system call the first time. */
BXR_INTERNAL size_t bxr_memory_page_size(void);

/* `size` bytes of zeroes for the library itself; NULL on failure. unmap also undoes bxr_memory_reserve, as far as the
   system can. */
BXR_INTERNAL void *bxr_memory_map(size_t size);
BXR_INTERNAL void bxr_memory_unmap(void *start, size_t size);

/* Gives the address space back that bxr_memory_reserve has ready. */
BXR_INTERNAL void bxr_memory_release(void);

#endif
