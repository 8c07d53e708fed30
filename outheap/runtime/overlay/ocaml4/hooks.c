/* SPDX-License-Identifier: MIT */
#include "hooks.h"
#include "clock.h"
#include "helper.h"
#include "limit.h"
#include "block.h"
#include "outheap.h"
#include "prelude.h"
#include "ranges.h"
#include "settings.h"
#include "space.h"
#include "start.h"
#include "stats.h"
#include "watch.h"
#include "program.h"
#include <caml/version.h>

/* Pulls the public functions into every program, for units that declare them weak: a weak declaration alone does
   not. */
__attribute__((used)) static struct {
  enum outheap_kind (*classify)(void const *);
  void (*statistics)(struct outheap_statistics *);
  size_t (*report)(size_t, void (*)(void const *, void const *), void const *);
  bool (*set_opaque)(bool);
} const interface = {outheap_classify, outheap_statistics, outheap_report, outheap_set_opaque};

#ifdef NATIVE_CODE
#define TEXT(word) #word
#define DIGITS(word) TEXT(word)
#ifndef OH_STDLIB /* outheap-build: the digest of this compiler's interface Stdlib */
#define OH_STDLIB unknown
#endif
extern char caml_globals_map[];
#endif

/* Bytecode names the version that it is for itself. */
static void check_version(void)
{
#ifdef NATIVE_CODE
  oh_version_check(caml_globals_map, DIGITS(OH_STDLIB), OCAML_VERSION_STRING);
#endif
}

static uintptr_t round_up(uintptr_t n, uintptr_t to) { return (n + to - 1) / to * to; }

/* --- chunks of the heap. Their sizes are those of the stock runtime, since the pace of collection depends on them. */

/* With huge pages (OCAMLRUNPARAM=H) too the memory comes from here, or the table would not know it; the setting `thp`
   decides whether the system is asked for huge pages. */
char *caml_alloc_for_heap(asize_t request)
{
  uintptr_t head = sizeof(heap_chunk_head), start;
#ifdef HAS_HUGE_PAGES
  if (caml_use_huge_pages) request = Round_mmap_size(head + request) - head;
  else
#endif
    request = round_up(request, Page_size);
  if (request > UINTPTR_MAX / 2) return NULL;
  void *block = oh_block_alloc(request + head + Page_size);
  if (block == NULL) return NULL;
  start = round_up((uintptr_t)block + head, Page_size);
  heap_chunk_head *chunk = Chunk_head(start);
  chunk->block = block;
  chunk->size = request;
  /* Nothing to darken again: the first range is the empty one at the end, and the end is at the start. */
  chunk->redarken_first.start = chunk->redarken_first.end = (value *)(start + request);
  chunk->redarken_end = (value *)start;
  return (char *)start;
}

void caml_free_for_heap(char *start) { oh_block_free(Chunk_block(start)); }

void oh_hooks_trim(void)
{
  oh_block_trim();
  oh_space_trim(OH_SPACE_BLOCKS);
}

/* --- minor heaps */

/* In the flavour that counts. */
#if OH_COUNT
static void end_of_slice(void) { oh_stats_slice(oh_watch_output()); }
#endif
static void watch_slices(void)
{
#if OH_COUNT
  if (oh_settings.slices) caml_major_slice_end_hook = end_of_slice;
#endif
}

void *oh_hooks_alloc_minor_heap(uintptr_t bytes)
{
  oh_start();
  watch_slices();
  return bytes > UINTPTR_MAX / 2 ? NULL : oh_space_alloc(OH_SPACE_YOUNG, round_up(bytes, OH_PAGE), true, NULL);
}

void oh_hooks_free_minor_heap(void *start, uintptr_t bytes)
{
  oh_space_free(OH_SPACE_YOUNG, start, round_up(bytes, OH_PAGE));
}

/* --- slices of the major collector */

void (*oh_hooks_slice_took)(uint64_t nanoseconds);
static uint64_t slice_began;

void oh_hooks_begin_slice(void)
{
  if (oh_hooks_slice_took != NULL) slice_began = oh_clock_used();
}

void oh_hooks_end_slice(void)
{
  if (oh_hooks_slice_took != NULL && slice_began != 0) oh_hooks_slice_took(oh_clock_used() - slice_began);
  slice_began = 0;
}

/* --- the table of pages, as the runtime and the stubs of others see it */

int caml_page_table_initialize(mlsize_t bytes)
{
  (void)bytes;
  check_version();
  oh_start();
  oh_helper_refuse();
  oh_limit_refuse();
  return 0;
}

int caml_page_table_lookup(void *address)
{
  uintptr_t a = (uintptr_t)address;
  switch (oh_table_kind(a)) {
    case OH_KIND_MAJOR: return In_heap;
    case OH_KIND_YOUNG:
      return a >= (uintptr_t)Caml_state->young_start && a < (uintptr_t)Caml_state->young_end ? In_young : 0;
    default: return oh_pointer_is_value(a) ? In_static_data : 0;
  }
}

/* The table knows the heap and the minor heaps; nothing else can become heap. In static data, from `start` to `end`,
   the values are the addresses behind a header, so `end` may be one (an empty block), and `start` is none. */
int caml_page_table_add(int kind, void *start, void *end)
{
  uintptr_t from = (uintptr_t)start, to = (uintptr_t)end;
  if (kind & In_heap) return oh_table_kind(from) == OH_KIND_MAJOR ? 0 : -1;
  if (kind & In_young) return oh_table_kind(from) == OH_KIND_YOUNG ? 0 : -1;
  if (from >= to) return 0;
  return oh_ranges_add(from + sizeof(header_t), to + sizeof(header_t), OH_RANGES_VALUES, false) == 0 ? 0 : -1;
}

int caml_page_table_remove(int kind, void *start, void *end)
{
  uintptr_t from = (uintptr_t)start, to = (uintptr_t)end;
  if (!(kind & In_static_data) || from >= to) return 0;
  return oh_ranges_remove(from + sizeof(header_t), to + sizeof(header_t), OH_RANGES_VALUES, false) == 0 ? 0 : -1;
}
