/* SPDX-License-Identifier: MIT */
#include "reserve.h"
#include "check.h"
#include "extent.h"
#include "lock.h"
#include "os.h"
#include "pages.h"
#include "zone.h"
#include <errno.h>
#include <pthread.h>

#define TRIES 32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct oh_extents stock;
static bool frugal; /* address space is scarce: take what is needed, not whole chunks */
/* For each space, and the stock. */
static struct owner {
  uintptr_t next;  /* in its part of the zone: no chunk below can be had any more */
  uintptr_t end;   /* of the last piece */
  struct oh_reserve_counters count;
} owners[OH_SPACES + 1];
enum { STOCK = OH_SPACES };

static enum oh_kind kind_of(int id)
{
  static uint8_t const kinds[OH_SPACES] = { [OH_SPACE_YOUNG] = OH_YOUNG, [OH_SPACE_POOLS] = OH_MAJOR, [OH_SPACE_BLOCKS] = OH_MAJOR,
    [OH_SPACE_MARKED] = OH_MAJOR, [OH_SPACE_VALUES] = OH_VALUES, [OH_SPACE_FOREIGN] = OH_FOREIGN };
  return kinds[id];
}

/* The first chunk from `from` on, below `to`, that cannot be claimed any more, or `to`. */
static uintptr_t first_taken(int id, uintptr_t from, uintptr_t to)
{
  for (; from < to; from += OH_CHUNK) {
    enum oh_kind k = oh_entry(from);
    if (k == OH_UNKNOWN || (id == OH_SPACE_FOREIGN && (k == OH_FOREIGN || k == OH_MIXED || k == OH_ASK))) continue;
    return from;
  }
  return to;
}

static bool is_tainted(uintptr_t chunk)
{
  enum oh_kind k = oh_entry(chunk);
  return (k == OH_FOREIGN || k == OH_MIXED || k == OH_ASK) && (oh_page_bits(chunk) & OH_OWNER) == 0; /* not OH_SPACE_FOREIGN's */
}

static bool map_at(int id, uintptr_t at, size_t bytes)
{
  owners[id].count.reservations++;
  return oh_os_reserve_at(at, bytes);
}

/* --- the stock ----------------------------------------------------------------------------------------------------- */

/* Whole chunks of [from, to), which is reserved and nobody's. Without memory for the record they are reserved in vain. */
static bool stock_add(uintptr_t from, uintptr_t to)
{
  from = OH_ROUND_UP(from, OH_CHUNK), to = OH_ROUND_DOWN(to, OH_CHUNK);
  size_t nodes = from < to ? (to - from) / OH_CHUNK / 2 + 1 : 0;
  if (from >= to || !oh_extents_supply(&stock, nodes)) return false;
  oh_extents_promise(&stock, nodes);
  oh_extents_give(&stock, from, to - from);
  owners[STOCK].count.chunks += (to - from) / OH_CHUNK;
  return true;
}

/* Claims [at, at + bytes), reserved just now, for a space. What remains beyond a tainted chunk goes to the stock. */
static bool claim(int id, uintptr_t at, size_t bytes, struct oh_piece *got)
{
  uintptr_t end = at + bytes, c = OH_ROUND_UP(at, OH_CHUNK);
  while (c < end && oh_claim(c, kind_of(id))) c += OH_CHUNK, owners[id].count.chunks++;
  if (c < end) {
    owners[id].count.tainted++;
    stock_add(c + OH_CHUNK, end);
    if (c == at) return false;
    end = c;
  }
  *got = (struct oh_piece){ at, end - at };
  owners[id].count.reserved += end - at;
  return true;
}

static bool from_stock(int id, size_t bytes, struct oh_piece *got)
{
  size_t size = OH_ROUND_UP(bytes, OH_CHUNK);
  for (struct oh_extent *e; (e = oh_extents_best(&stock, size)) != NULL;) {
    uintptr_t at = id == OH_SPACE_BLOCKS ? oh_extent_end(e) - size : e->base;
    if (!oh_map_make(&oh_page_map, at, size, 1)) return false;
    oh_extents_cut(&stock, e, at, size);
    owners[STOCK].count.chunks -= size / OH_CHUNK;
    if (claim(id, at, size, got)) return true;
  }
  return false;
}

/* --- new address space --------------------------------------------------------------------------------------------- */

/* [at, at + bytes), and the records for it; reserved, not yet claimed. `at` may lie inside a chunk that is the space's already. */
static bool map_here(int id, uintptr_t at, size_t bytes)
{
  uintptr_t end = at + bytes, c = OH_ROUND_UP(at, OH_CHUNK);
  if (end < at || end > oh_zone_limit() || first_taken(id, c, end) < end) return false;
  if (!oh_map_make(&oh_page_map, at, bytes, 1)) {
    errno = ENOMEM;
    return false;
  }
  return map_at(id, at, bytes);
}

/* A new run in the space's part of the zone; 0 if there is none. */
static uintptr_t map_in_zone(int id, size_t bytes)
{
  struct owner *o = &owners[id];
  uintptr_t at = o->next, step = OH_ROUND_UP(bytes, OH_CHUNK);
  for (int i = 0; oh_zone_usable() && i < TRIES && bytes <= oh_zone_limit() && at <= oh_zone_limit() - bytes;) {
    uintptr_t taken = first_taken(id, at, at + bytes);
    if (taken < at + bytes) {
      if (taken == o->next) { /* no request finds room here any more */
        o->count.tainted += is_tainted(taken);
        o->next += OH_CHUNK;
      }
      at = taken + OH_CHUNK;
      continue;
    }
    errno = 0;
    if (map_here(id, at, bytes)) {
      return at;
    }
    if (errno == ENOMEM) break; /* nothing lies there: a limit is reached */
    at += step;
    if (++i > 4) step *= 2;
  }
  return 0;
}

/* Where the system likes. */
static uintptr_t map_anywhere(int id, size_t bytes)
{
  for (int i = 0; i < TRIES; i++) {
    owners[id].count.reservations++;
    uintptr_t at = oh_os_reserve(bytes, OH_CHUNK, oh_zone_limit()), good = at, taken;
    if (at == 0) return 0;
    if ((taken = first_taken(id, at, at + bytes)) >= at + bytes) {
      if (oh_map_make(&oh_page_map, at, bytes, 1)) return at;
      oh_os_release(at, bytes);
      return 0;
    }
    /* Kept, so that the system chooses another place the next time. */
    for (; good < at + bytes; good = taken + OH_CHUNK, taken = first_taken(id, good, at + bytes)) {
      stock_add(good, taken < at + bytes ? taken : at + bytes);
      owners[id].count.tainted += taken < at + bytes && is_tainted(taken);
    }
  }
  return 0;
}

static uintptr_t map_new(int id, size_t bytes)
{
  uintptr_t at = map_in_zone(id, bytes);
  return at != 0 ? at : map_anywhere(id, bytes);
}

static bool found(int id, uintptr_t at, size_t bytes, struct oh_piece *got)
{
  if (at == 0 || !claim(id, at, bytes, got)) return false;
  owners[id].end = got->base + got->bytes;
  return true;
}

/* Whole chunks: `bytes`, or `less` at the end of the last piece. */
static bool reserve_chunks(int id, size_t bytes, size_t less, struct oh_piece *got)
{
  uintptr_t end = owners[id].end;
  size_t here = OH_ROUND_UP(end + less, OH_CHUNK) - end, there = OH_ROUND_UP(bytes, OH_CHUNK);
  if (end != 0 && map_here(id, end, here) && found(id, end, here, got)) return true;
  for (int i = 0; i < TRIES; i++) {
    uintptr_t at = map_new(id, there);
    if (at == 0) return false;
    if (found(id, at, there, got)) return true;
  }
  return false;
}

/* A part of a chunk, or of the last of several: what can be had. */
static bool reserve_short(int id, size_t bytes, size_t less, struct oh_piece *got)
{
  uintptr_t end = owners[id].end;
  size_t extra = OH_ROUND_DOWN(owners[id].count.reserved / 8, OH_PAGE);
  if (extra < 8 * OH_PAGE) extra = 8 * OH_PAGE;
  for (int i = 0; i < 2; i++, extra = 0) {
    size_t here = less + extra, there = bytes + extra, room = OH_ROUND_UP(end + less, OH_CHUNK) - end;
    if (here > room) here = room;
    if (there > OH_ROUND_UP(bytes, OH_CHUNK)) there = OH_ROUND_UP(bytes, OH_CHUNK);
    if (end != 0 && map_here(id, end, here) && found(id, end, here, got)) return true;
    if (found(id, map_new(id, there), there, got)) return true;
  }
  return false;
}

bool oh_reserve(enum oh_space_id id, size_t bytes, size_t tail, struct oh_piece *got)
{
  bool done = false;
  if (bytes <= oh_zone_limit()) {
    size_t less = tail < bytes ? bytes - tail : OH_PAGE;
    pthread_mutex_lock(&lock);
    done = from_stock(id, bytes, got) || (!frugal && reserve_chunks(id, bytes, less, got)) || reserve_short(id, bytes, less, got);
    pthread_mutex_unlock(&lock);
  }
  if (!done) errno = ENOMEM;
  return done;
}

uintptr_t oh_reserve_end(enum oh_space_id id)
{
  pthread_mutex_lock(&lock);
  uintptr_t end = owners[id].end;
  pthread_mutex_unlock(&lock);
  return end;
}

/* --- ahead --------------------------------------------------------------------------------------------------------- */

int oh_reserve_ahead(size_t bytes)
{
  if (bytes == 0 || bytes > oh_zone_limit()) return EINVAL;
  struct oh_piece pieces[64];
  size_t n = 0, left = OH_ROUND_UP(bytes, OH_CHUNK), size = left;
  pthread_mutex_lock(&lock);
  /* In one piece if possible, otherwise in halves. */
  while (left != 0 && n < sizeof pieces / sizeof *pieces && oh_extents_supply(&stock, bytes / OH_CHUNK / 2 + 2 * (n + 2))) {
    if (size > left) size = left;
    uintptr_t at = map_new(STOCK, size);
    if (at != 0) {
      pieces[n++] = (struct oh_piece){ at, size };
      left -= size;
    }
    else if (size == OH_CHUNK) break;
    else size = OH_ROUND_UP(size / 2, OH_CHUNK);
  }
  bool added = left == 0;
  for (size_t i = 0; i < n; i++) {
    if (left == 0) added = stock_add(pieces[i].base, pieces[i].base + pieces[i].bytes) && added;
    else oh_os_release(pieces[i].base, pieces[i].bytes);
  }
  pthread_mutex_unlock(&lock);
  return added ? 0 : ENOMEM;
}

/* --- the rest ------------------------------------------------------------------------------------------------------ */

void oh_reserve_start(uintptr_t base)
{
  oh_zone_start(base);
  frugal = oh_os_address_limit() / 64 < OH_CHUNK;
  for (int i = 0; i <= STOCK; i++) owners[i].next = oh_zone_part(i);
}

void oh_reserve_count(enum oh_space_id id, struct oh_reserve_counters *result)
{
  pthread_mutex_lock(&lock);
  *result = owners[id].count;
  result->ahead = 0;
  if (id == OH_SPACES) {
    result->reserved = result->ahead = stock.bytes;
    for (int i = 0; i < OH_SPACES; i++) {
      result->chunks += owners[i].count.chunks;
      result->tainted += owners[i].count.tainted;
      result->reservations += owners[i].count.reservations;
      result->reserved += owners[i].count.reserved;
    }
  }
  pthread_mutex_unlock(&lock);
}

void oh_reserve_validate(void)
{
  pthread_mutex_lock(&lock);
  oh_extents_validate(&stock);
  OH_CHECK(stock.bytes == owners[STOCK].count.chunks * OH_CHUNK);
  for (struct oh_extent *e = oh_extents_above(&stock, 0); e != NULL; e = oh_extents_above(&stock, e->base + 1))
    for (uintptr_t p = e->base; p < oh_extent_end(e); p += OH_PAGE) OH_CHECK((oh_page_bits(p) & OH_OWNER) == 0);
  pthread_mutex_unlock(&lock);
}

void oh_reserve_lock(void) { pthread_mutex_lock(&lock); }
void oh_reserve_unlock(void) { pthread_mutex_unlock(&lock); }
