/* SPDX-License-Identifier: MIT */
#include "outheap.h"
#include "outheap_marker.h"
#include "address_space.h"
#include "block.h"
#include "pace.h"
#include "header.h"
#include "helper.h"
#include "reclaim.h"
#include "settings.h"
#include "limit.h"
#include "pointer.h"
#include "pool.h"
#include "ranges.h"
#include "space.h"
#include "start.h"
#include "stats.h"
#include "watch.h"
#include <errno.h>

/* --- outheap.h ---------------------------------------------------------------------------------------------------- */

#define WORD sizeof(void *)

#define SAME(name) _Static_assert((int)OUTHEAP_##name == (int)OH_KIND_##name, "kinds")
SAME(UNKNOWN);
SAME(MAJOR);
SAME(YOUNG);
SAME(VALUES);
SAME(FOREIGN);

enum outheap_kind outheap_classify(void const *address)
{
  uintptr_t a = (uintptr_t)address;
  enum oh_kind k = oh_table_kind(a);
  if (oh_kind_is_region(k)) return k == OH_KIND_REGION ? OUTHEAP_VALUES : OUTHEAP_FOREIGN;
  if (k != OH_KIND_MIXED && k != OH_KIND_REPORTED) return (enum outheap_kind)k;
  /* Ranges are those of pointers to blocks, a word behind the memory. */
  return a <= UINTPTR_MAX - WORD && (oh_ranges_at(a + WORD) & OH_RANGES_VALUES) ? OUTHEAP_VALUES : OUTHEAP_FOREIGN;
}

static bool is_range(uintptr_t begin, uintptr_t end)
{
  return begin != 0 && begin % WORD == 0 && end % WORD == 0 && begin < end && end <= UINTPTR_MAX - WORD;
}

int outheap_declare_values(void const *begin, void const *end)
{
  uintptr_t b = (uintptr_t)begin, e = (uintptr_t)end;
  return is_range(b, e) ? oh_ranges_add(b + WORD, e + WORD, OH_RANGES_VALUES, true) : EINVAL;
}

int outheap_withdraw_values(void const *begin, void const *end)
{
  uintptr_t b = (uintptr_t)begin, e = (uintptr_t)end;
  return is_range(b, e) ? oh_ranges_remove(b + WORD, e + WORD, OH_RANGES_VALUES, true) : EINVAL;
}

char const *outheap_setting(char const *name, size_t *length)
{
  oh_start(); /* which reads them */
  return oh_settings_value(name, length);
}

bool outheap_set_opaque(bool opaque)
{
  oh_start(); /* which reads the setting */
  return oh_header_set_opaque(opaque);
}

int outheap_reserve(size_t bytes)
{
  oh_start();
  return oh_reserve_ahead(bytes);
}

static bool space_of(enum outheap_kind kind, enum oh_space_id *id)
{
  switch (kind) {
    case OUTHEAP_MAJOR: *id = OH_SPACE_MARKED; return true;
    case OUTHEAP_VALUES: *id = OH_SPACE_VALUES; return true;
    case OUTHEAP_FOREIGN: *id = OH_SPACE_FOREIGN; return true;
    default: return false;
  }
}

void *outheap_allocate(enum outheap_kind kind, size_t bytes)
{
  enum oh_space_id id;
  if (!space_of(kind, &id) || bytes == 0) {
    errno = EINVAL;
    return NULL;
  }
  if (bytes > SIZE_MAX / 2) {
    errno = ENOMEM;
    return NULL;
  }
  oh_start();
  bool fresh;
  bytes = OH_ROUND_UP(bytes, OH_PAGE);
  void *memory = oh_space_alloc(id, bytes, true, &fresh);
  if (memory != NULL && !fresh) oh_space_purge(id, memory, bytes);
  return memory;
}

void outheap_free(enum outheap_kind kind, void *memory, size_t bytes)
{
  enum oh_space_id id;
  if (memory == NULL || bytes == 0 || bytes > SIZE_MAX / 2 || !space_of(kind, &id)) return;
  bytes = OH_ROUND_UP(bytes, OH_PAGE);
  uintptr_t b = (uintptr_t)memory;
  if (!oh_space_is_used(id, memory, bytes)) return; /* not ours, or freed before: left alone */
  /* The next contents are not values unless they are declared again. */
  if (id == OH_SPACE_FOREIGN) (void)oh_ranges_remove(b + WORD, b + bytes + WORD, OH_RANGES_VALUES, false);
  (void)oh_space_free_checked(id, memory, bytes);
}

void outheap_statistics(struct outheap_statistics *result) { oh_stats_get(result); }

size_t outheap_report(size_t every, void (*sample)(void const *pointer, void const *data), void const *data)
{
  oh_start();
  return oh_report_set(every, sample, data);
}

size_t outheap_trim(void)
{
  oh_start();
  return oh_pool_trim(1) + oh_block_trim() + oh_space_trim(OH_SPACE_YOUNG) + oh_space_trim(OH_SPACE_MARKED) +
         oh_space_trim(OH_SPACE_VALUES) + oh_space_trim(OH_SPACE_FOREIGN);
}

/* --- outheap_marker.h --------------------------------------------------------------------------------------------- */

_Static_assert((int)OUTHEAP_MARKER_BY_ROOT == (int)OH_REGION_BY_ROOT, "bits");
_Static_assert((int)OUTHEAP_MARKER_BY_BLOCK == (int)OH_REGION_BY_BLOCK, "bits");
_Static_assert(sizeof(struct outheap_marker_cycle) == sizeof(struct oh_region_owner), "the same record");

bool outheap_marker_can_tell(void)
{
  oh_start();
  return OH_TAINT && oh_region_has_cycles;
}

/* Whole chunks; false: not below the end of the table. */
static bool cut(void const *start, size_t bytes, uintptr_t *begin, uintptr_t *end)
{
  *begin = (uintptr_t)start;
  if (*begin % OH_CHUNK != 0 || bytes == 0 || OH_IS_BEYOND(*begin)) return false;
  if (bytes > OH_ADDRESS_LIMIT - *begin) return false;
  *end = OH_ROUND_UP(*begin + bytes, OH_CHUNK);
  return true;
}

bool outheap_marker_claim(void const *start, size_t bytes)
{
  uintptr_t begin, end;
  oh_start();
  if (!cut(start, bytes, &begin, &end)) return false;
  for (uintptr_t c = begin; c < end; c += OH_CHUNK)
    if (!oh_table_claim(c, OH_KIND_REGION)) return false;
  oh_heap_range_include(begin, end - begin);
  return true;
}

bool outheap_marker_claim_cells(void const *start, size_t bytes)
{
  uintptr_t begin, end;
  if (OUTHEAP_MARKER_MAP != OH_REGION_MAP) return false; /* chunks of another size, as tests have them */
  if (!outheap_marker_can_tell() || !cut(start, bytes, &begin, &end)) return false;
  /* before a marker can find that the chunk is one of a region */
  for (uintptr_t c = begin; c < end; c += OH_CHUNK)
    oh_store_relaxed(&oh_region_reach_bits[c >> OH_CHUNK_LOG], (uint8_t)OH_REGION_CELLS);
  return outheap_marker_claim(start, bytes);
}

void outheap_marker_use_map(void const *start, size_t bytes, int map)
{
  uintptr_t begin, end;
  uint8_t bits = (uint8_t)(map == 0 ? OH_REGION_CELLS : OH_REGION_CELLS | OH_REGION_SECOND);
  if (!cut(start, bytes, &begin, &end)) return;
  for (uintptr_t c = begin; c < end; c += OH_CHUNK)
    if (oh_load_relaxed(&oh_region_reach_bits[c >> OH_CHUNK_LOG]) & OH_REGION_CELLS)
      oh_store_relaxed(&oh_region_reach_bits[c >> OH_CHUNK_LOG], bits);
}

void outheap_marker_revoke(void const *start, size_t bytes)
{
  uintptr_t begin, end;
  if (cut(start, bytes, &begin, &end)) oh_table_revoke(begin, end);
}

unsigned outheap_marker_met(void const *start, size_t bytes)
{
  uintptr_t begin, end;
  unsigned reached = 0;
  if (!cut(start, bytes, &begin, &end)) return 0;
  if (oh_track_is_unreached(begin)) return 0; /* what it refers to was not marked: a reach bit is older than that */
  for (uintptr_t c = begin; c < end; c += OH_CHUNK)
    reached |= oh_load_relaxed(&oh_region_reach_bits[c >> OH_CHUNK_LOG]);
  return reached & (OH_REGION_BY_ROOT | OH_REGION_BY_BLOCK);
}

void outheap_marker_clear(void const *start, size_t bytes)
{
  uintptr_t begin, end;
  if (!cut(start, bytes, &begin, &end)) return;
  for (uintptr_t c = begin; c < end; c += OH_CHUNK) {
    uint8_t *bits = &oh_region_reach_bits[c >> OH_CHUNK_LOG];
    if ((oh_load_relaxed(bits) & OH_REGION_CELLS) == 0) oh_store_relaxed(bits, (uint8_t)0);
  }
}

void outheap_marker_meet(void const *pointer)
{
  if (oh_kind_is_region(oh_table_kind((uintptr_t)pointer))) oh_region_reach((uintptr_t)pointer, OH_REGION_BY_ROOT);
}

size_t outheap_marker_watch(void const *start, size_t bytes)
{
  size_t found = oh_load_relaxed(&oh_region_watch.found);
  oh_store_relaxed(&oh_region_watch.size, (uintptr_t)0);
  oh_store_relaxed(&oh_region_watch.begin, (uintptr_t)start);
  oh_store_relaxed(&oh_region_watch.found, (size_t)0);
  oh_store_relaxed(&oh_region_watch.size, (uintptr_t)bytes);
  return found;
}

/* --- tracked memory ----------------------------------------------------------------------------------------------- */

bool outheap_marker_can_track(void) { return outheap_marker_can_tell() && oh_track_runtime.darken != NULL; }

bool outheap_marker_track(void const *start, size_t bytes)
{
  uintptr_t begin, end;
  if (!outheap_marker_can_track() || !cut(start, bytes, &begin, &end)) return false;
  for (uintptr_t c = begin; c < end; c += OH_CHUNK)
    if (oh_table_kind(c) != OH_KIND_REGION) return false;
  return oh_track_add(begin, bytes);
}

void outheap_marker_keep(void const *start, bool keep) { oh_track_keep((uintptr_t)start, keep); }
size_t outheap_marker_tracked(void const *start) { return oh_track_count((uintptr_t)start); }
bool outheap_marker_hasten(void const *start) { return oh_track_hasten((uintptr_t)start); }
void outheap_marker_untrack(void const *start) { oh_track_remove((uintptr_t)start); }

void outheap_marker_forget(void const *start, size_t bytes)
{
  if (outheap_marker_can_track()) oh_track_runtime.forget((uintptr_t)start, (uintptr_t)start + bytes);
}

bool outheap_marker_on_cycle(struct outheap_marker_cycle *c)
{
  if (!outheap_marker_can_tell()) return false;
  oh_region_add_owner((struct oh_region_owner *)c);
  return true;
}

bool outheap_marker_follows(void const *pointer) { return oh_pointer_is_markable((uintptr_t)pointer); }

/* --- memory ------------------------------------------------------------------------------------------------------- */

void outheap_memory(struct outheap_memory *result)
{
  struct outheap_statistics s;
  oh_start();
  /* Pools that go back after the counters were read are counted nowhere; the other way round it would be twice. */
  oh_stats_get(&s);
  size_t used = oh_limit_used(), free = oh_pace_free(), pools = s.pools * OH_POOL;
  /* What domains have said may be older than a compaction that goes on, and not all that may be resident is. */
  free = (free < pools ? free : pools) + s.resident_free;
  *result = (struct outheap_memory){
    .used = used,
    .limit = oh_limit_bytes,
    .live = oh_load_relaxed(&oh_pace_heap.live),
    .free = free < used ? free : used,
    .pools = s.pool_pages * OH_PAGE,
    .blocks = s.block_bytes,
    .young = s.young,
  };
}

/* --- the helper --------------------------------------------------------------------------------------------------- */

void outheap_stop_helper(void)
{
  oh_reclaim_stop();
  oh_helper_end();
  oh_watch_stop();
}

size_t outheap_helper_spans(struct outheap_helper_span *spans, size_t most) { return oh_helper_take(spans, most); }
