/* SPDX-License-Identifier: MIT */
#include "place.h"
#include "notice.h"
#include "os.h"
#include "page.h"
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

static uintptr_t find_in_zone(struct oh_place *p, size_t bytes)
{
  uintptr_t at = p->next, step = OH_ROUND_UP(bytes, OH_CHUNK);
  for (int i = 0; oh_zone_usable() && i < ATTEMPTS && bytes <= oh_zone_limit() && at <= oh_zone_limit() - bytes;) {
    uintptr_t taken = first_taken(p, at, at + bytes);
    if (taken < at + bytes) {
      if (taken == p->next) { /* no request finds room here any more */
        p->tainted += is_tainted(taken);
        p->next += OH_CHUNK;
      }
      at = taken + OH_CHUNK;
      continue;
    }
    errno = 0;
    if (oh_place_at(p, at, bytes)) return at;
    if (errno == ENOMEM) break; /* nothing is there: a limit is reached */
    at += step;
    if (++i > 4) step *= 2;
  }
  return 0;
}

uintptr_t oh_place_vacant(struct oh_place *p, size_t bytes)
{
  if (!oh_zone_usable() || bytes > oh_zone_part_size()) return 0;
  uintptr_t at = p->next;
  for (int i = 0; i < ATTEMPTS && at <= oh_zone_limit() - bytes;) {
    uintptr_t taken = first_taken(p, at, at + bytes);
    if (taken < at + bytes) {
      at = taken + OH_CHUNK;
      continue;
    }
    errno = 0;
    if (oh_os_reserve_at(at, bytes)) {
      oh_os_release(at, bytes);
      return at;
    }
    if (errno == ENOMEM) return at; /* a limit is reached, so that nobody can tell; probably nothing is there */
    at += bytes;
    i++;
  }
  return 0;
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
  uintptr_t at = find_in_zone(p, bytes);
  if (at != 0) return at;
  at = find_anywhere(p, bytes);
  if (at != 0 && oh_zone_usable()) oh_notice(OH_NOTICE_ZONE, bytes);
  return at;
}
