/* SPDX-License-Identifier: MIT */
/* Blocks of any size in OH_SPACE_BLOCKS: what the runtime used malloc for (large blocks of OCaml 5, heap chunks of 4.14). Two-level
   segregated fit: constant time, coalescing with both neighbours, splitting. Extents come from space.h in large pages, and go back when
   they are free; the inner large pages of a big free block are given back to the system with hysteresis.

   Source of the idea: M. Masmano, I. Ripoll, A. Crespo, J. Real, "TLSF: a new dynamic memory allocator for real-time systems" (2004). */
#ifndef OH_BLOCK_H
#define OH_BLOCK_H

#include <stddef.h>

/* A block of at least `bytes`, aligned to 16. NULL with errno = ENOMEM. Any thread; a block may be given back by another. Zero bytes: a block all the same. */
void *oh_block_take(size_t bytes);
void oh_block_give(void *block); /* NULL: nothing */

/* The number of bytes that can be used. */
size_t oh_block_size(void const *block);

/* Gives memory of free blocks back to the system. Result: bytes. */
size_t oh_blocks_trim(void);

struct oh_block_counters { size_t blocks, bytes, resident_free, extents; };
void oh_blocks_count(struct oh_block_counters *result);
void oh_blocks_validate(void);

#endif
