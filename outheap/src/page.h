/* SPDX-License-Identifier: MIT */
/* The state of each large page of the heap: a byte outside of it, which changes under the lock of the space that the
     page belongs to.

     owner = 0  =>  no other bit is set;   dirty  =>  committed and not in use. */
#ifndef OH_PAGE_H
#define OH_PAGE_H

#include "pagemap.h"

enum oh_page_bits {
  OH_PAGE_OWNER = 7,      /* 1 + the number of the space, or 0 */
  OH_PAGE_COMMITTED = 8,  /* accessible */
  OH_PAGE_DIRTY = 16      /* not in use, but may be resident */
};
extern oh_pagemap oh_page_map;

static inline uint8_t *oh_page_at(uintptr_t address) { return oh_pagemap_find(&oh_page_map, address, 1); }
static inline uint8_t oh_page_bits(uintptr_t address)
{
  uint8_t *p = oh_page_at(address);
  return p == NULL ? 0 : oh_load_relaxed(p);
}

/* Sees to it that there are records for these addresses. False: no memory. */
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
