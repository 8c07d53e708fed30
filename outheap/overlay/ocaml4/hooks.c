/* SPDX-License-Identifier: MIT */
/* What takes the place of the runtime's own: chunks of the heap, minor heaps, the table of pages. */
#include "prelude.h"
#include "block.h"
#include "outheap.h"
#include "ranges.h"
#include "settings.h"
#include "space.h"

/* A program that declares the interface weak shall find it: its units are in the archive, but such a declaration does not pull them out. */
__attribute__((used)) static struct {
  enum outheap_kind (*classify)(void const *);
  void (*statistics)(struct outheap_statistics *);
  size_t (*report)(size_t, void (*)(void const *, void const *), void const *);
} const oh_interface = {outheap_classify, outheap_statistics, outheap_report};

static uintptr_t round_up(uintptr_t n, uintptr_t to) { return (n + to - 1) / to * to; }

/* --- chunks of the heap. Their sizes are those of the stock runtime, since the pace of collection depends on them. */

/* With huge pages (OCAMLRUNPARAM=H) too the memory is ours, or the table would not know it; whether the system is asked for huge pages is the setting `thp`. */
char *caml_alloc_for_heap(asize_t request)
{
  uintptr_t head = sizeof(heap_chunk_head), start;
#ifdef HAS_HUGE_PAGES
  if (caml_use_huge_pages) request = Round_mmap_size(head + request) - head;
  else
#endif
    request = round_up(request, Page_size);
  if (request > UINTPTR_MAX / 2) return NULL;
  void *block = oh_block_take(request + head + Page_size);
  if (block == NULL) return NULL;
  start = round_up((uintptr_t)block + head, Page_size);
  heap_chunk_head *chunk = Chunk_head(start);
  chunk->block = block;
  chunk->size = request;
  /* Nothing to darken again: the first range is the empty one at the end, and the end lies at the start. */
  chunk->redarken_first.start = chunk->redarken_first.end = (value *)(start + request);
  chunk->redarken_end = (value *)start;
  return (char *)start;
}

void caml_free_for_heap(char *start) { oh_block_give(Chunk_block(start)); }

void oh_heap_trim(void)
{
  oh_blocks_trim();
  oh_pages_trim(OH_SPACE_BLOCKS);
}

/* --- minor heaps */

void *oh_minor_heap_take(uintptr_t bytes)
{
  oh_start();
  return bytes > UINTPTR_MAX / 2 ? NULL : oh_pages_take(OH_SPACE_YOUNG, round_up(bytes, OH_PAGE), true, NULL);
}

void oh_minor_heap_give(void *start, uintptr_t bytes) { oh_pages_give(OH_SPACE_YOUNG, start, round_up(bytes, OH_PAGE)); }

/* --- the table of pages, as the runtime and the stubs of others see it */

int caml_page_table_initialize(mlsize_t bytes)
{
  (void)bytes;
  oh_start();
  return 0;
}

int caml_page_table_lookup(void *address)
{
  uintptr_t a = (uintptr_t)address;
  switch (oh_entry(a)) {
    case OH_MAJOR: return In_heap;
    case OH_YOUNG: return a >= (uintptr_t)Caml_state->young_start && a < (uintptr_t)Caml_state->young_end ? In_young : 0;
    default: return oh_is_value(a) ? In_static_data : 0;
  }
}

/* What lies in the heap and the minor heaps is known by its chunk; nothing else can be made heap. Of static data, from `start` to `end`, the values
   are the addresses behind a header, so `end` may be one (an empty block), and `start` is none. */
int caml_page_table_add(int kind, void *start, void *end)
{
  uintptr_t from = (uintptr_t)start, to = (uintptr_t)end;
  if (kind & In_heap) return oh_entry(from) == OH_MAJOR ? 0 : -1;
  if (kind & In_young) return oh_entry(from) == OH_YOUNG ? 0 : -1;
  if (from >= to) return 0;
  return oh_ranges_add(from + sizeof(header_t), to + sizeof(header_t), OH_HOLDS_VALUES, false) == 0 ? 0 : -1;
}

int caml_page_table_remove(int kind, void *start, void *end)
{
  uintptr_t from = (uintptr_t)start, to = (uintptr_t)end;
  if (!(kind & In_static_data) || from >= to) return 0;
  return oh_ranges_remove(from + sizeof(header_t), to + sizeof(header_t), OH_HOLDS_VALUES, false) == 0 ? 0 : -1;
}
