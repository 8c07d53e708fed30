/* SPDX-License-Identifier: MIT */
#include "outheap_marker.h"
#include "marked.h"
#include "pointer.h"
#include "region.h"
#include "start.h"

_Static_assert((int)OUTHEAP_MARKER_BY_ROOT == (int)OH_REGION_BY_ROOT, "notes");
_Static_assert((int)OUTHEAP_MARKER_BY_BLOCK == (int)OH_REGION_BY_BLOCK, "notes");
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
  if (*begin % OH_CHUNK != 0 || bytes == 0 || *begin >> OH_ADDRESS_BITS != 0) return false;
  if (bytes > ((uintptr_t)1 << OH_ADDRESS_BITS) - *begin) return false;
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
  oh_marked_claimed(begin, end - begin);
  return true;
}

bool outheap_marker_claim_cells(void const *start, size_t bytes)
{
  uintptr_t begin, end;
  if (OUTHEAP_MARKER_MAP != OH_REGION_MAP) return false; /* chunks of another size, as tests have them */
  if (!outheap_marker_can_tell() || !cut(start, bytes, &begin, &end)) return false;
  /* before a marker can find that the chunk is one of a region */
  for (uintptr_t c = begin; c < end; c += OH_CHUNK)
    oh_store_relaxed(&oh_region_notes[c >> OH_CHUNK_LOG], (uint8_t)OH_REGION_CELLS);
  return outheap_marker_claim(start, bytes);
}

void outheap_marker_use_map(void const *start, size_t bytes, int map)
{
  uintptr_t begin, end;
  uint8_t note = (uint8_t)(map == 0 ? OH_REGION_CELLS : OH_REGION_CELLS | OH_REGION_SECOND);
  if (!cut(start, bytes, &begin, &end)) return;
  for (uintptr_t c = begin; c < end; c += OH_CHUNK)
    if (oh_load_relaxed(&oh_region_notes[c >> OH_CHUNK_LOG]) & OH_REGION_CELLS)
      oh_store_relaxed(&oh_region_notes[c >> OH_CHUNK_LOG], note);
}

void outheap_marker_revoke(void const *start, size_t bytes)
{
  uintptr_t begin, end;
  if (cut(start, bytes, &begin, &end)) oh_table_revoke(begin, end);
}

unsigned outheap_marker_met(void const *start, size_t bytes)
{
  uintptr_t begin, end;
  unsigned met = 0;
  if (!cut(start, bytes, &begin, &end)) return 0;
  if (oh_track_is_unmet(begin)) return 0; /* what it refers to was not marked: a note is older than that */
  for (uintptr_t c = begin; c < end; c += OH_CHUNK) met |= oh_load_relaxed(&oh_region_notes[c >> OH_CHUNK_LOG]);
  return met & (OH_REGION_BY_ROOT | OH_REGION_BY_BLOCK);
}

void outheap_marker_clear(void const *start, size_t bytes)
{
  uintptr_t begin, end;
  if (!cut(start, bytes, &begin, &end)) return;
  for (uintptr_t c = begin; c < end; c += OH_CHUNK) {
    uint8_t *note = &oh_region_notes[c >> OH_CHUNK_LOG];
    if ((oh_load_relaxed(note) & OH_REGION_CELLS) == 0) oh_store_relaxed(note, (uint8_t)0);
  }
}

void outheap_marker_meet(void const *pointer)
{
  if (oh_kind_is_region(oh_table_kind((uintptr_t)pointer))) oh_region_meet((uintptr_t)pointer, OH_REGION_BY_ROOT);
}

size_t outheap_marker_watch(void const *start, size_t bytes)
{
  size_t met = oh_load_relaxed(&oh_region_watch.met);
  oh_store_relaxed(&oh_region_watch.size, (uintptr_t)0);
  oh_store_relaxed(&oh_region_watch.begin, (uintptr_t)start);
  oh_store_relaxed(&oh_region_watch.met, (size_t)0);
  oh_store_relaxed(&oh_region_watch.size, (uintptr_t)bytes);
  return met;
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
