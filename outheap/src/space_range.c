/* SPDX-License-Identifier: MIT */
#include "space_range.h"
#include "metadata.h"
#include "os.h"
#include "page.h"
#include "space_memory.h"
#include <errno.h>

uintptr_t oh_space_range_take(struct oh_space_state *s, size_t bytes)
{
  struct oh_space_state_range *best = NULL;
  for (struct oh_space_state_range *r = s->ranges; r != NULL; r = r->next)
    if (!r->taken && r->bytes >= bytes && (best == NULL || r->bytes < best->bytes)) best = r;
  if (best == NULL) {
    best = oh_metadata_alloc(sizeof *best);
    uintptr_t base = best == NULL ? 0 : oh_reserve_range(oh_space_state_id(s), bytes);
    if (base == 0) return 0; /* the record is lost, which is a matter of bytes */
    *best = (struct oh_space_state_range){ s->ranges, base, OH_ROUND_UP(bytes, OH_CHUNK), false };
    s->ranges = best;
  }
  best->taken = true;
  return best->base;
}

/* Parts that were never reserved have no records, perhaps. */
static uintptr_t next_committed(uintptr_t from, uintptr_t end)
{
  while (from < end && !(oh_page_bits(from) & OH_PAGE_COMMITTED)) from += OH_PAGE;
  return from;
}

/* What the system refuses to take back stays committed. */
static void uncommit(struct oh_space_state *s, uintptr_t from, uintptr_t end)
{
  while ((from = next_committed(from, end)) < end) {
    uintptr_t to = from;
    while (to < end && (oh_page_bits(to) & OH_PAGE_COMMITTED)) to += OH_PAGE;
    if (oh_os_uncommit((void *)from, to - from)) {
      size_t bytes = oh_page_clear(from, to, OH_PAGE_COMMITTED);
      s->committed -= bytes;
      s->busy -= bytes;
      oh_space_memory_advise_piece(s, (struct oh_reserve_piece){ from, to - from });
    }
    from = to;
  }
}

bool oh_space_range_give(struct oh_space_state *s, uintptr_t base)
{
  for (struct oh_space_state_range *r = s->ranges; r != NULL; r = r->next)
    if (r->taken && r->base == base) {
      r->taken = false;
      uncommit(s, base, base + r->bytes);
      return true;
    }
  return false;
}

bool oh_space_range_holds(struct oh_space_state const *s, uintptr_t from, uintptr_t to)
{
  for (struct oh_space_state_range const *r = s->ranges; r != NULL; r = r->next)
    if (r->taken && r->base <= from && to <= r->base + r->bytes) return true;
  return false;
}

static void add_used(struct oh_space_state *s, struct oh_reserve_piece p)
{
  oh_space_state_add_piece(s, p);
  s->used += p.bytes;
  oh_space_memory_advise_piece(s, p);
}

bool oh_space_range_reserve(struct oh_space_state *s, uintptr_t from, uintptr_t to)
{
  if (s->ranges == NULL || !oh_space_range_holds(s, from, to)) return true;
  while (from < to) {
    uintptr_t end = from;
    while (end < to && (oh_page_bits(end) & OH_PAGE_OWNER) == 0) end += OH_PAGE;
    if (end == from) {
      from += OH_PAGE;
      continue;
    }
    if (!oh_space_state_prepare_piece(s)) {
      errno = ENOMEM;
      return false;
    }
    if (!oh_reserve_part(oh_space_state_id(s), from, end - from)) return false;
    add_used(s, (struct oh_reserve_piece){ from, end - from });
    from = end;
  }
  return true;
}
