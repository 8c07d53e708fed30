/* SPDX-License-Identifier: MIT */
/* A map from large pages to records of a fixed size, in two levels. Lookup takes constant time and no lock. A record
   stays once it is there; it is filled with zeroes at first. */
#ifndef OH_PAGEMAP_H
#define OH_PAGEMAP_H

#include "atomic.h"
#include "config.h"
#include "metadata.h"
#include <stdbool.h>

/* The root takes 512 KB of static memory, of which the touched pages are resident. With the usual sizes a leaf covers 2
   GB. */
#define OH_PAGEMAP_ROOT_LOG 16
#define OH_PAGEMAP_LEAF_LOG (OH_ADDRESS_BITS - OH_PAGE_LOG - OH_PAGEMAP_ROOT_LOG)
#define OH_PAGEMAP_ROOT ((size_t)1 << OH_PAGEMAP_ROOT_LOG)
#define OH_PAGEMAP_LEAF ((size_t)1 << OH_PAGEMAP_LEAF_LOG)
_Static_assert(OH_ADDRESS_BITS - OH_PAGE_LOG >= OH_PAGEMAP_ROOT_LOG, "the root alone would do");

typedef struct oh_pagemap { char *leaf[OH_PAGEMAP_ROOT]; } oh_pagemap;

/* The record of the large page with this address (any 64-bit pattern); NULL if it has none. */
static inline void *oh_pagemap_find(oh_pagemap *m, uintptr_t address, size_t record)
{
  size_t page = address >> OH_PAGE_LOG;
  if (page >> (OH_PAGEMAP_ROOT_LOG + OH_PAGEMAP_LEAF_LOG) != 0) return NULL;
  char *leaf = oh_load_acquire(&m->leaf[page >> OH_PAGEMAP_LEAF_LOG]);
  return leaf == NULL ? NULL : leaf + (page & (OH_PAGEMAP_LEAF - 1)) * record;
}

/* Sees to it that the pages of [address, address + bytes) have records. False: no memory. Two threads may do this at
   the same time; the leaf of the second one is lost, which is rare. */
static inline bool oh_pagemap_ensure(oh_pagemap *m, uintptr_t address, size_t bytes, size_t record)
{
  size_t last = (address + bytes - 1) >> (OH_PAGE_LOG + OH_PAGEMAP_LEAF_LOG);
  for (size_t i = address >> (OH_PAGE_LOG + OH_PAGEMAP_LEAF_LOG); i <= last; i++) {
    char *leaf = NULL;
    if (oh_load_acquire(&m->leaf[i]) != NULL) continue;
    char *made = (char *)oh_metadata_alloc(OH_PAGEMAP_LEAF * record);
    if (made == NULL) return false;
    (void)__atomic_compare_exchange_n(&m->leaf[i], &leaf, made, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
  }
  return true;
}

#endif
