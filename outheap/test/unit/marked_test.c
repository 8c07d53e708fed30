/* SPDX-License-Identifier: MIT */
/* The range of the marked spaces: what lies in it, and what becomes of it when a chunk lies elsewhere. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "table.h"
#include "base.h"
#include "outheap.h"
#include "address_space.h"
#include "space.h"
#include "start.h"
#include "try.h"
#include <sys/mman.h>

static bool in_range(void const *p) { return (uintptr_t)p - oh_heap_range.base < oh_heap_range.size; }

static char *take(enum oh_space_id id)
{
  char *p = oh_space_alloc(id, OH_PAGE, false, NULL);
  EXPECT(p != NULL, "space %d", id);
  return p;
}

static void inside(void)
{
  EXPECT(oh_heap_range_is_whole() == oh_zone_usable(), "whole");
  if (!oh_heap_range_is_whole()) return;
  uintptr_t last = oh_heap_range.base + oh_heap_range.size - 1;
  EXPECT(oh_heap_range.size > 0 && last >> OH_CHUNK_LOG < OH_TABLE_ENTRIES, "table");
  static enum oh_space_id const spaces[] = { OH_SPACE_YOUNG, OH_SPACE_POOLS, OH_SPACE_BLOCKS, OH_SPACE_MARKED };
  for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
    EXPECT(in_range(take(spaces[i])), "space %d", spaces[i]);
  EXPECT(!in_range(take(OH_SPACE_VALUES)) && !in_range(take(OH_SPACE_FOREIGN)), "others");
  EXPECT(oh_heap_range_is_whole(), "whole after allocation");
}

static void ahead(void)
{
  if (oh_reserve_ahead(OH_CHUNK) != 0 || !oh_heap_range_is_whole()) return;
  char *p = oh_space_alloc(OH_SPACE_BLOCKS, OH_CHUNK, false, NULL);
  EXPECT(p != NULL && oh_heap_range_is_whole() && in_range(p), "from the stock");
}

/* Takes all that is free of [from, to). */
static void occupy(uintptr_t from, uintptr_t to)
{
  void *p = mmap((void *)from, to - from, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                 -1, 0);
  if (p != MAP_FAILED || to - from <= OH_CHUNK) return;
  uintptr_t middle = OH_ROUND_UP(from + (to - from) / 2, OH_CHUNK);
  if (middle >= to) return;
  occupy(from, middle);
  occupy(middle, to);
}

/* Something else takes the rest of its part: the next chunk is in that of another space. When all of the range is
   taken, it is elsewhere. */
static void outgrown(void)
{
  if (!oh_heap_range_is_whole()) return;
  occupy(OH_ROUND_UP((uintptr_t)take(OH_SPACE_MARKED), OH_CHUNK), oh_heap_range.base + oh_heap_range.size);
  for (int i = 0; i < 4; i++) {
    char *p = oh_space_alloc(OH_SPACE_FOREIGN, OH_CHUNK, false, NULL);
    EXPECT(p != NULL && oh_heap_range_is_whole(), "foreign memory is no part of it");
  }
  char *other = oh_space_alloc(OH_SPACE_MARKED, OH_CHUNK, false, NULL);
  EXPECT(other != NULL && in_range(other) && oh_heap_range_is_whole(), "%p: there is room in the range", (void *)other);
  occupy(oh_heap_range.base, oh_heap_range.base + oh_heap_range.size);
  for (int i = 0; i < 4; i++) {
    char *p = oh_space_alloc(OH_SPACE_MARKED, OH_CHUNK, false, NULL);
    EXPECT(p != NULL && (in_range(p) || !oh_heap_range_is_whole()), "%p outside, and not known", (void *)p);
  }
  EXPECT(!oh_heap_range_is_whole(), "nothing was placed outside");
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  setenv("OUTHEAP", "thp=off", 1);
  oh_start();
  TRY(inside);
  TRY(ahead);
  TRY(outgrown);
  return try_end();
}
