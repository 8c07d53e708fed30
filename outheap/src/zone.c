/* SPDX-License-Identifier: MIT */
#include "zone.h"
#include "os.h"

#if defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

static uintptr_t start, part;

/* The width of this process's address space, or of the table if that is less. The stack is near the top. */
static unsigned width(void)
{
  int here;
  unsigned bits = 64 - (unsigned)__builtin_clzll((uintptr_t)&here);
  return bits < OH_ADDRESS_BITS ? bits : OH_ADDRESS_BITS;
}

void oh_zone_start(uintptr_t base)
{
  unsigned w = width();
  if (w < OH_CHUNK_LOG + 7 || base >= oh_zone_limit()) return; /* no room: parts would be smaller than two chunks */
  part = (uintptr_t)1 << (w - 6);
  start = base != 0
            ? OH_ROUND_DOWN(base, OH_CHUNK)
            : ((uintptr_t)1 << (w - 2)) + OH_ROUND_DOWN(oh_os_random() & (((uintptr_t)1 << (w - 4)) - 1), OH_CHUNK);
}

bool oh_zone_usable(void)
{
#ifdef SANITIZED
  return false;
#else
  return start != 0;
#endif
}

uintptr_t oh_zone_part(int i) { return start + (uintptr_t)i * part; }
size_t oh_zone_part_size(void) { return part; }
bool oh_zone_regions(uintptr_t *begin, uintptr_t *end)
{
  *begin = (uintptr_t)1 << OH_ZONE_REGIONS_LOG, *end = 2 * *begin;
  return oh_zone_usable() && part >= (uintptr_t)1 << (OH_ZONE_REGIONS_LOG - 3);
}

uintptr_t oh_zone_limit(void) { return (uintptr_t)1 << OH_ADDRESS_BITS; }
