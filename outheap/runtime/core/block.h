/* SPDX-License-Identifier: MIT */
/* Blocks of any size in OH_SPACE_BLOCKS, where stock OCaml uses malloc: large blocks of OCaml 5, heap chunks of 4.14.
   Two-level segregated fit: constant time, coalescing with both neighbours, splitting. Memory comes from space.h in
   large pages, which are freed when they are empty.

   Source of the idea: M. Masmano, I. Ripoll, A. Crespo, J. Real, "TLSF: a new dynamic memory allocator for real-time
   systems" (2004). */
#ifndef OH_BLOCK_H
#define OH_BLOCK_H

#include "base.h"
#include <stdbool.h>
#include <stddef.h>

/* A block of at least `bytes`, aligned to 16. NULL with errno = ENOMEM. Any thread; a block may be freed by another
   thread. Zero bytes give a block as well. */
void *oh_block_alloc(size_t bytes);
void oh_block_free(void *block); /* NULL: nothing */

/* The number of bytes that can be used. */
size_t oh_block_size(void const *block);

/* Purges free blocks. Result: bytes. */
size_t oh_block_trim(void);

/* Memory that stays free. `age` is called at the end of each cycle of the collector. In every other call it records
   what is free now, by a walk over the free blocks of 128 KiB and more. After the next call `purge_old`, which is
   called between the steps of marking while oh_block_has_old(), purges what has been recorded and is free still, but
   for the space's allowance: blocks of 8 MiB in all in a call, or one of up to 32 MiB, without a lock meanwhile. Free
   large pages go back as space.h says (oh_space_age). Any thread. */
void oh_block_age(void);
void oh_block_purge_old(void);
extern size_t oh_block_old;
static inline bool oh_block_has_old(void) { return oh_load_relaxed(&oh_block_old) != 0; }

struct oh_block_counters { size_t blocks, bytes, resident_free, extents; };
void oh_block_count(struct oh_block_counters *result);
void oh_block_validate(void);

/* For start.c: the locks of all arenas. */
void oh_block_lock(void);
void oh_block_unlock(void);

#endif
