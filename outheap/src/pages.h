/* SPDX-License-Identifier: MIT */
/* What is known of each large page of the heap: a byte, outside of it. Changed under the lock of the space that the page belongs to.

     owner = 0  =>  no other bit is set;   dirty  =>  committed and not given out;   used pages are seen. */
#ifndef OH_PAGES_H
#define OH_PAGES_H

#include "pagemap.h"

enum oh_page_bits {
  OH_OWNER = 7,      /* 1 + the number of the space, or 0 */
  OH_COMMITTED = 8,  /* accessible */
  OH_DIRTY = 16,     /* not in use, but maybe resident */
  OH_SEEN = 32       /* was given out at some time */
};
extern oh_map oh_page_map;

static inline uint8_t *oh_page_at(uintptr_t address) { return oh_map_find(&oh_page_map, address, 1); }
static inline uint8_t oh_page_bits(uintptr_t address)
{
  uint8_t *p = oh_page_at(address);
  return p == NULL ? 0 : oh_load_relaxed(p);
}

/* All take ranges cut at large pages, whose records exist. Results are in bytes; those of `set` and `clear` tell how much changed. */
size_t oh_bits_set(uintptr_t from, uintptr_t to, uint8_t bits);
size_t oh_bits_clear(uintptr_t from, uintptr_t to, uint8_t bits);
size_t oh_bits_count(uintptr_t from, uintptr_t to, uint8_t bit);
uintptr_t oh_bits_first(uintptr_t from, uintptr_t to, uint8_t bit, bool value); /* the first page where it has that value, or `to` */
uintptr_t oh_bits_last(uintptr_t from, uintptr_t to, uint8_t bit, bool value);  /* the end of the last such page, or `from` */

#endif
