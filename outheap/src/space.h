/* SPDX-License-Identifier: MIT */
/* A space: memory of one kind and one policy, in chunks of its own, given out in large pages, best fit with coalescing.

   Each space has its own chunks so that the process map stays small: within a chunk all mappings have the same flags, and memory is made
   accessible from low addresses upwards. Nothing is ever unmapped, and no holes are made: memory goes back to the system by
   madvise, address space never.

   Locks: one mutex for each space; `reserve.c` has one of its own, taken inside. All are held across fork. */
#ifndef OH_SPACE_H
#define OH_SPACE_H

#include "table.h"
#include <stddef.h>

enum oh_thp {
  OH_THP_OFF,    /* never */
  OH_THP_ADVISE, /* for large pages that are in use as a whole, once the space has grown beyond oh_settings.thp_from bytes */
  OH_THP_ALWAYS  /* from the first page */
};

enum oh_space_id {
  OH_SPACE_YOUNG,  /* minor heaps */
  OH_SPACE_POOLS,  /* small blocks of OCaml 5: slab.h */
  OH_SPACE_BLOCKS, /* large blocks; OCaml 4.14's heap chunks: block.h */
  OH_SPACE_MARKED, /* outheap_allocate(OUTHEAP_MAJOR): never huge */
  OH_SPACE_VALUES,
  OH_SPACE_FOREIGN,
  OH_SPACES
};

struct oh_space_counters {
  size_t reserved, ahead;  /* bytes of address space; of these, never given out since they were reserved */
  size_t used;             /* bytes given out */
  size_t committed;        /* bytes made accessible */
  size_t dirty;            /* bytes not given out, but accessible and maybe resident */
  size_t commits, decommits, advises, reservations, tainted;
};

/* Gives `bytes` (a positive multiple of OH_PAGE), aligned to OH_PAGE. The memory is accessible when `commit`; what it holds is
   undefined, unless `*fresh` (if asked for) says that it is all zeroes. NULL with errno = ENOMEM when there is no address space or memory. */
void *oh_pages_take(enum oh_space_id, size_t bytes, bool commit, bool *fresh);

/* Takes them back, or a part of them cut at large pages. Memory beyond the space's allowance (hysteresis) goes back to the system. */
void oh_pages_give(enum oh_space_id, void *start, size_t bytes);

/* For input that may be wrong: are these whole large pages of this space, in use? And the same as above, unless they are not: false. */
bool oh_pages_are_used(enum oh_space_id, void *start, size_t bytes);
bool oh_pages_give_checked(enum oh_space_id, void *start, size_t bytes);

/* Makes a part (cut at system pages) of pages taken without `commit` accessible, and with it the large pages that it lies in. False: errno = ENOMEM. */
bool oh_pages_commit(enum oh_space_id, void *start, size_t bytes);

/* Gives the memory (not the address space) of a part (cut at system pages) of used pages back to the system; it reads as zeroes afterwards. */
void oh_pages_discard(enum oh_space_id, void *start, size_t bytes);

/* Gives all that is not in use back to the system. Result: bytes. */
size_t oh_pages_trim(enum oh_space_id);

/* Reserves ahead, in one piece if possible. 0, ENOMEM, EINVAL. */
int oh_pages_reserve(enum oh_space_id, size_t bytes);

void oh_pages_count(enum oh_space_id, struct oh_space_counters *result);

/* In the checked build: all invariants of all spaces; aborts with a message. */
void oh_pages_validate(void);

#endif
