/* SPDX-License-Identifier: MIT */
/* A map from large pages to records of a fixed size: two levels, found in constant time without a lock. A record, once there, stays. All records are zeroes at first. */
#ifndef OH_PAGEMAP_H
#define OH_PAGEMAP_H

#include "atomic.h"
#include "config.h"
#include "os.h"

/* The root takes 512 KB of untouched static memory. With the usual sizes a leaf covers 2 GB. */
#define OH_MAP_ROOT_LOG 16
#define OH_MAP_LEAF_LOG (OH_ADDRESS_BITS - OH_PAGE_LOG - OH_MAP_ROOT_LOG)
#define OH_MAP_ROOT ((size_t)1 << OH_MAP_ROOT_LOG)
#define OH_MAP_LEAF ((size_t)1 << OH_MAP_LEAF_LOG)
_Static_assert(OH_ADDRESS_BITS - OH_PAGE_LOG >= OH_MAP_ROOT_LOG, "the root alone would do");

typedef struct oh_map { char *leaf[OH_MAP_ROOT]; } oh_map;

/* The record of the large page with this address (any 64-bit pattern); NULL if it has none. */
static inline void *oh_map_find(oh_map *m, uintptr_t address, size_t record)
{
  size_t page = address >> OH_PAGE_LOG;
  if (page >> (OH_MAP_ROOT_LOG + OH_MAP_LEAF_LOG) != 0) return NULL;
  char *leaf = oh_load_acquire(&m->leaf[page >> OH_MAP_LEAF_LOG]);
  return leaf == NULL ? NULL : leaf + (page & (OH_MAP_LEAF - 1)) * record;
}

/* Sees to it that the pages of [address, address + bytes) have records. False: no memory. Two threads may do this at once; the leaf of the one that comes
   second is lost, which is rare. */
static inline bool oh_map_make(oh_map *m, uintptr_t address, size_t bytes, size_t record)
{
  size_t last = (address + bytes - 1) >> (OH_PAGE_LOG + OH_MAP_LEAF_LOG);
  for (size_t i = address >> (OH_PAGE_LOG + OH_MAP_LEAF_LOG); i <= last; i++) {
    char *leaf = NULL;
    if (oh_load_relaxed(&m->leaf[i]) != NULL) continue;
    char *made = (char *)oh_os_metadata(OH_MAP_LEAF * record);
    if (made == NULL) return false;
    (void)__atomic_compare_exchange_n(&m->leaf[i], &leaf, made, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
  }
  return true;
}

#endif
