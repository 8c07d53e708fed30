/* SPDX-License-Identifier: MIT */
/* Large pages: which spaces they belong to, records for them, and the state of each. */
#ifndef OH_PAGE_H
#define OH_PAGE_H

#include "os.h"
#include "table.h"

/* --- spaces ------------------------------------------------------------------------------------------------------- */

/* The list of spaces: what each is for, the kind of its chunks, and the huge pages that it gets unless a setting says
   otherwise. */
#define OH_SPACES_LIST(X)                                                               \
  X(YOUNG, OH_KIND_YOUNG, ADVISE)    /* minor heaps */                                  \
  X(POOLS, OH_KIND_MAJOR, ADVISE)    /* pools of OCaml 5: pool.h */                     \
  X(BLOCKS, OH_KIND_MAJOR, ADVISE)   /* large blocks; heap chunks of 4.14: block.h */   \
  X(MARKED, OH_KIND_MAJOR, OFF)      /* outheap_allocate(OUTHEAP_MAJOR) */              \
  X(VALUES, OH_KIND_VALUES, OFF)     /* outheap_allocate(OUTHEAP_VALUES) */             \
  X(FOREIGN, OH_KIND_FOREIGN, OFF)   /* outheap_allocate(OUTHEAP_FOREIGN) */

#define OH_SPACES_ID(name, kind, thp) OH_SPACE_##name,
enum oh_space_id { OH_SPACES_LIST(OH_SPACES_ID) OH_SPACES };
#undef OH_SPACES_ID

static inline enum oh_kind oh_spaces_kind(enum oh_space_id id)
{
#define OH_SPACES_KIND(name, kind, thp) kind,
  static signed char const kinds[OH_SPACES] = { OH_SPACES_LIST(OH_SPACES_KIND) };
#undef OH_SPACES_KIND
  return (enum oh_kind)kinds[id];
}

/* --- a map from large pages to records ---------------------------------------------------------------------------- */

/* A map from large pages to records of a fixed size, in two levels. Lookup takes constant time and no lock. A record
   stays once it is there; it is filled with zeroes at first.

   The root takes 512 KB of static memory, of which the touched pages are resident. With the usual sizes a leaf covers 2
   GB. */
#ifndef OH_PAGEMAP_ROOT_LOG
#define OH_PAGEMAP_ROOT_LOG 16
#endif
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

/* Ensures that the pages of [address, address + bytes) have records. False: no memory. Two threads may do this at
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

/* --- the state of large pages ------------------------------------------------------------------------------------- */

/* The state of each large page of the heap: a byte outside of it, which changes under the lock of the space that the
   page belongs to.

     owner = 0  =>  no other bit is set;   dirty  =>  committed and not in use;   hugetlb  =>  committed;
     split  =>  committed and not hugetlb. */
enum oh_page_bits {
  OH_PAGE_OWNER = 7,      /* 1 + the number of the space, or 0 */
  OH_PAGE_COMMITTED = 8,  /* accessible */
  OH_PAGE_DIRTY = 16,     /* not in use, but may be resident */
  OH_PAGE_HUGETLB = 32,   /* of the system's pool (hugetlb.h) */
  OH_PAGE_SPLIT = 64      /* no huge page is wanted here, since a part was given back */
};
extern oh_pagemap oh_page_map;

static inline uint8_t *oh_page_at(uintptr_t address) { return oh_pagemap_find(&oh_page_map, address, 1); }
static inline uint8_t oh_page_bits(uintptr_t address)
{
  uint8_t *p = oh_page_at(address);
  return p == NULL ? 0 : oh_load_relaxed(p);
}

/* Ensures that there are records for these addresses. False: no memory. */
static inline bool oh_page_ensure(uintptr_t address, size_t bytes)
{
  return oh_pagemap_ensure(&oh_page_map, address, bytes, 1);
}

/* All take ranges cut at large pages, whose records exist. Results are in bytes; those of `set` and `clear` tell how
   much changed. */
size_t oh_page_set(uintptr_t from, uintptr_t to, uint8_t bits);
size_t oh_page_clear(uintptr_t from, uintptr_t to, uint8_t bits);
size_t oh_page_count(uintptr_t from, uintptr_t to, uint8_t bit);
/* the first page where the bit has that value, or `to` */
uintptr_t oh_page_first(uintptr_t from, uintptr_t to, uint8_t bit, bool value);
/* the end of the last such page, or `from` */
uintptr_t oh_page_last(uintptr_t from, uintptr_t to, uint8_t bit, bool value);

#endif
