/* SPDX-License-Identifier: MIT */
#include "place.h"
#include "os.h"
#include "page.h"
#include "spaces.h"
#include "stock.h"
#include "table.h"
#include "zone.h"
#include <errno.h>

#define ATTEMPTS 32

/* The first chunk from `from` on, below `to`, that cannot be claimed any more, or `to`. */
static uintptr_t first_taken(struct oh_place const *p, uintptr_t from, uintptr_t to)
{
  for (; from < to; from += OH_CHUNK) {
    enum oh_kind k = oh_table_kind(from);
    if (k != OH_KIND_UNKNOWN && !(p->foreign && oh_kind_is_foreign(k))) return from;
  }
  return to;
}

/* Foreign, but not since it belongs to the space of foreign memory. */
static bool is_tainted(uintptr_t chunk)
{
  return oh_kind_is_foreign(oh_table_kind(chunk)) && (oh_page_bits(chunk) & OH_PAGE_OWNER) == 0;
}

bool oh_place_at(struct oh_place *p, uintptr_t at, size_t bytes)
{
  uintptr_t end = at + bytes, c = OH_ROUND_UP(at, OH_CHUNK);
  if (end < at || end > oh_zone_limit() || first_taken(p, c, end) < end) return false;
  if (!oh_page_ensure(at, bytes)) {
    errno = ENOMEM;
    return false;
  }
  p->reservations++;
  return oh_os_reserve_at(at, bytes);
}

/* Is [at, at + bytes) vacant? What is reserved for that is released. */
static bool is_vacant(struct oh_place *p, uintptr_t at, size_t bytes)
{
  p->reservations++;
  if (!oh_os_reserve_at(at, bytes)) return false;
  oh_os_release(at, bytes);
  return true;
}

/* Tries places in [from, to), from below, at growing distances: what lies in the way may be large. 0: none; errno =
   ENOMEM if a limit is reached, and then `*last` is the place where that was seen. */
static uintptr_t find_between(struct oh_place *p, uintptr_t from, uintptr_t to, size_t bytes,
                              bool (*take)(struct oh_place *, uintptr_t, size_t), uintptr_t *last)
{
  uintptr_t at = from, step = OH_ROUND_UP(bytes, OH_CHUNK);
  if (to > oh_zone_limit()) to = oh_zone_limit();
  errno = 0;
  for (int i = 0; i < ATTEMPTS && bytes <= to && at <= to - bytes;) {
    uintptr_t taken = first_taken(p, at, at + bytes);
    if (taken < at + bytes) {
      if (taken == p->next) { /* no request finds room here any more */
        p->tainted += is_tainted(taken);
        p->next += OH_CHUNK;
      }
      at = taken + OH_CHUNK;
      continue;
    }
    *last = at;
    errno = 0;
    if (take(p, at, bytes)) return at;
    if (errno == ENOMEM) return 0; /* nothing is there */
    at += step;
    if (++i > 4) step *= 2;
  }
  return 0;
}

/* In the space's own part, or else in the second half of another, which other spaces hardly reach; or anywhere in it,
   if half a part is too small; or above all parts. */
static uintptr_t find_in_zone(struct oh_place *p, size_t bytes,
                              bool (*take)(struct oh_place *, uintptr_t, size_t), uintptr_t *last)
{
  if (!oh_zone_usable()) return 0;
  uintptr_t at = find_between(p, p->next, p->end, bytes, take, last);
  for (int i = 0; i <= OH_SPACES && at == 0 && errno != ENOMEM; i++) {
    size_t half = OH_ROUND_DOWN(oh_zone_part_size() / 2, OH_CHUNK);
    uintptr_t from = oh_zone_part(i) + (bytes <= half ? half : 0);
    at = find_between(p, from, oh_zone_part(i + 1), bytes, take, last);
  }
  if (at != 0 || errno == ENOMEM) return at;
  return find_between(p, oh_zone_part(OH_SPACES + 1), oh_zone_limit(), bytes, take, last);
}

uintptr_t oh_place_vacant(struct oh_place *p, size_t bytes)
{
  uintptr_t last = 0;
  if (bytes > oh_zone_part_size()) return 0;
  uintptr_t at = find_in_zone(p, bytes, is_vacant, &last);
  /* At a limit nobody can tell; probably nothing is there. */
  return at == 0 && errno == ENOMEM ? last : at;
}

bool oh_place_is_home(struct oh_place const *p, uintptr_t at, size_t bytes)
{
  return !oh_zone_usable() || (at >= p->begin && at <= p->end && bytes <= p->end - at);
}

static uintptr_t find_anywhere(struct oh_place *p, size_t bytes)
{
  for (int i = 0; i < ATTEMPTS; i++) {
    p->reservations++;
    uintptr_t at = oh_os_reserve(bytes, OH_CHUNK, oh_zone_limit()), good = at, taken;
    if (at == 0) return 0;
    if ((taken = first_taken(p, at, at + bytes)) >= at + bytes) {
      if (oh_page_ensure(at, bytes)) return at;
      oh_os_release(at, bytes);
      return 0;
    }
    /* Kept, so that the system chooses another place the next time; its good chunks go to the stock. */
    for (; good < at + bytes; good = taken + OH_CHUNK, taken = first_taken(p, good, at + bytes)) {
      oh_stock_add(good, taken < at + bytes ? taken : at + bytes);
      p->tainted += taken < at + bytes && is_tainted(taken);
    }
  }
  return 0;
}

uintptr_t oh_place_find(struct oh_place *p, size_t bytes)
{
  uintptr_t last, at = find_in_zone(p, bytes, oh_place_at, &last);
  return at != 0 ? at : find_anywhere(p, bytes);
}
