/* SPDX-License-Identifier: MIT */
#include "page.h"

oh_pagemap oh_page_map;

static bool has(uintptr_t page, uint8_t bit) { return (oh_page_bits(page) & bit) != 0; }

size_t oh_page_set(uintptr_t from, uintptr_t to, uint8_t bits)
{
  size_t changed = 0;
  for (; from < to; from += OH_PAGE) {
    uint8_t *p = oh_page_at(from), old = oh_load_relaxed(p);
    if ((old | bits) == old) continue;
    oh_store_relaxed(p, (uint8_t)(old | bits));
    changed += OH_PAGE;
  }
  return changed;
}

size_t oh_page_clear(uintptr_t from, uintptr_t to, uint8_t bits)
{
  size_t changed = 0;
  for (; from < to; from += OH_PAGE) {
    uint8_t *p = oh_page_at(from), old = oh_load_relaxed(p);
    if ((old & bits) == 0) continue;
    oh_store_relaxed(p, (uint8_t)(old & ~bits));
    changed += OH_PAGE;
  }
  return changed;
}

size_t oh_page_count(uintptr_t from, uintptr_t to, uint8_t bit)
{
  size_t n = 0;
  for (; from < to; from += OH_PAGE) n += has(from, bit) ? OH_PAGE : 0;
  return n;
}

uintptr_t oh_page_first(uintptr_t from, uintptr_t to, uint8_t bit, bool value)
{
  while (from < to && has(from, bit) != value) from += OH_PAGE;
  return from < to ? from : to;
}

uintptr_t oh_page_last(uintptr_t from, uintptr_t to, uint8_t bit, bool value)
{
  while (to > from && has(to - OH_PAGE, bit) != value) to -= OH_PAGE;
  return to;
}
