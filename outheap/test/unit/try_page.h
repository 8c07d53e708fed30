/* SPDX-License-Identifier: MIT */
/* Contents of pages: words that depend on where they are, and zeroes. */
#ifndef TRY_PAGE_H
#define TRY_PAGE_H

#include "page.h"
#include "try.h"

/* Some words of a page, which depend on its address. */
static inline void stamp(char *page, uint64_t mark)
{
  for (size_t i = 0; i < OH_PAGE; i += OH_PAGE / 2) memcpy(page + i, (uint64_t[]){ mark + (uintptr_t)page + i }, 8);
}
static inline bool has(char *page, uint64_t mark)
{
  for (size_t i = 0; i < OH_PAGE; i += OH_PAGE / 2)
    if (memcmp(page + i, (uint64_t[]){ mark + (uintptr_t)page + i }, 8) != 0) return false;
  return true;
}
static inline bool is_zero(char *page)
{
  for (size_t i = 0; i < OH_PAGE; i += OH_PAGE / 4)
    if (memcmp(page + i, (uint64_t[]){ 0 }, 8) != 0) return false;
  return true;
}

/* Tests with small spaces need a small allowance of free memory. */
static inline void try_small_allowance(void)
{
  setenv("OUTHEAP", OH_PAGE_LOG < 20 ? "thp=off,keep=1M" : "thp=off,keep=16M", 1);
}

#endif
