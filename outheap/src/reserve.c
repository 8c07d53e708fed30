/* SPDX-License-Identifier: MIT */
#include "reserve.h"
#include "marked.h"
#include "notice.h"
#include "os.h"
#include "page.h"
#include "place.h"
#include "stock.h"
#include "table.h"
#include "zone.h"
#include <errno.h>
#include <pthread.h>

#define ATTEMPTS 32

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool frugal; /* address space is scarce: take what is needed, not whole chunks */
enum { STOCK = OH_SPACES };
static struct owner {
  struct oh_place place;
  uintptr_t end;           /* of the last piece */
  size_t chunks, reserved; /* counters: claimed chunks, bytes */
} owners[OH_SPACES + 1] = { [OH_SPACE_FOREIGN] = { .place.foreign = true } };

/* The order of the parts of the zone. The range of marked.h has all that the marker follows pointers to, and all that
   must not come to lie where foreign pointers lead. */
static unsigned char const parts[OH_SPACES + 1] = {
  OH_SPACE_YOUNG, OH_SPACE_POOLS, OH_SPACE_BLOCKS, OH_SPACE_MARKED, STOCK, /* the range ends here */
  OH_SPACE_VALUES, OH_SPACE_FOREIGN
};
enum { RANGE = 5 };

/* The heap has left its part of the address space: that is counted. */
static void note_place(int id, uintptr_t at, size_t bytes)
{
  if (!oh_place_is_home(&owners[id].place, at, bytes)) oh_notice(OH_NOTICE_ZONE, bytes);
}

/* Claims [at, at + bytes), which is reserved, for a space. What remains beyond a tainted chunk goes to the stock. */
static bool claim(int id, uintptr_t at, size_t bytes, struct oh_reserve_piece *got)
{
  uintptr_t end = at + bytes, c = OH_ROUND_UP(at, OH_CHUNK);
  while (c < end && oh_table_claim(c, oh_spaces_kind(id))) c += OH_CHUNK, owners[id].chunks++;
  if (c < end) {
    owners[id].place.tainted++;
    oh_stock_add(c + OH_CHUNK, end);
    if (c == at) return false;
    end = c;
  }
  if (oh_spaces_kind(id) == OH_KIND_MAJOR) oh_marked_claimed(at, end - at);
  *got = (struct oh_reserve_piece){ at, end - at };
  owners[id].reserved += end - at;
  return true;
}

/* Claims a new piece, unless there is none (at = 0). */
static bool claim_new(int id, uintptr_t at, size_t bytes, struct oh_reserve_piece *got)
{
  if (at == 0 || !claim(id, at, bytes, got)) return false;
  owners[id].end = got->base + got->bytes;
  note_place(id, got->base, got->bytes);
  return true;
}

static bool claim_stock(int id, size_t bytes, struct oh_reserve_piece *got)
{
  size_t size = OH_ROUND_UP(bytes, OH_CHUNK);
  for (uintptr_t at; (at = oh_stock_take(size, id == OH_SPACE_BLOCKS)) != 0;)
    if (claim(id, at, size, got)) return true;
  return false;
}

/* Whole chunks: `bytes`, or `less` at the end of the last piece. */
static bool reserve_whole(int id, size_t bytes, size_t less, struct oh_reserve_piece *got)
{
  struct owner *o = &owners[id];
  uintptr_t end = o->end;
  size_t here = OH_ROUND_UP(end + less, OH_CHUNK) - end, there = OH_ROUND_UP(bytes, OH_CHUNK);
  if (end != 0 && oh_place_at(&o->place, end, here) && claim_new(id, end, here, got)) return true;
  for (int i = 0; i < ATTEMPTS; i++) {
    uintptr_t at = oh_place_find(&o->place, there);
    if (at == 0) return false;
    if (claim_new(id, at, there, got)) return true;
  }
  return false;
}

/* A part of a chunk, or of the last of several chunks: what can be had. */
static bool reserve_short(int id, size_t bytes, size_t less, struct oh_reserve_piece *got)
{
  struct owner *o = &owners[id];
  uintptr_t end = o->end;
  size_t extra = OH_ROUND_DOWN(o->reserved / 8, OH_PAGE);
  if (extra < 8 * OH_PAGE) extra = 8 * OH_PAGE;
  for (int i = 0; i < 2; i++, extra = 0) {
    size_t here = less + extra, there = bytes + extra, room = OH_ROUND_UP(end + less, OH_CHUNK) - end;
    if (here > room) here = room;
    if (there > OH_ROUND_UP(bytes, OH_CHUNK)) there = OH_ROUND_UP(bytes, OH_CHUNK);
    if (end != 0 && oh_place_at(&o->place, end, here) && claim_new(id, end, here, got)) return true;
    if (claim_new(id, oh_place_find(&o->place, there), there, got)) return true;
  }
  return false;
}

bool oh_reserve_chunks(enum oh_space_id id, size_t bytes, size_t tail, struct oh_reserve_piece *got)
{
  bool done = false;
  if (bytes <= oh_zone_limit()) {
    size_t less = tail < bytes ? bytes - tail : OH_PAGE;
    pthread_mutex_lock(&mutex);
    done = claim_stock(id, bytes, got) || (!frugal && reserve_whole(id, bytes, less, got)) ||
           reserve_short(id, bytes, less, got);
    pthread_mutex_unlock(&mutex);
  }
  if (!done) errno = ENOMEM;
  return done;
}

/* --- ranges ----------------------------------------------------------------------------------------------------------
   */

static bool claim_chunks(int id, uintptr_t at, size_t bytes)
{
  for (uintptr_t c = at; c < at + bytes; c += OH_CHUNK) {
    if (!oh_table_claim(c, oh_spaces_kind(id))) return false;
    owners[id].chunks++;
  }
  return true;
}

uintptr_t oh_reserve_range(enum oh_space_id id, size_t bytes)
{
  size_t size = OH_ROUND_UP(bytes, OH_CHUNK);
  uintptr_t found = 0;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < ATTEMPTS && found == 0; i++) {
    uintptr_t at = oh_place_vacant(&owners[id].place, size);
    if (at == 0) break;
    /* Otherwise a marker was faster; the chunks before that one stay ours, and unused. */
    if (claim_chunks(id, at, size)) found = at;
  }
  if (found != 0) note_place(id, found, size);
  pthread_mutex_unlock(&mutex);
  return found;
}

bool oh_reserve_part(enum oh_space_id id, uintptr_t at, size_t bytes)
{
  pthread_mutex_lock(&mutex);
  bool done = oh_page_ensure(at, bytes) && oh_os_reserve_at(at, bytes);
  owners[id].place.reservations++;
  if (done) owners[id].reserved += bytes;
  pthread_mutex_unlock(&mutex);
  if (!done) errno = ENOMEM;
  return done;
}

uintptr_t oh_reserve_end(enum oh_space_id id)
{
  pthread_mutex_lock(&mutex);
  uintptr_t end = owners[id].end;
  pthread_mutex_unlock(&mutex);
  return end;
}

int oh_reserve_ahead(size_t bytes)
{
  if (bytes == 0 || bytes > oh_zone_limit()) return EINVAL;
  struct oh_reserve_piece pieces[64];
  size_t n = 0, left = OH_ROUND_UP(bytes, OH_CHUNK), size = left;
  pthread_mutex_lock(&mutex);
  /* In one piece if possible, otherwise in halves. */
  while (left != 0 && n < sizeof pieces / sizeof *pieces && oh_stock_prepare(bytes, n + 2)) {
    if (size > left) size = left;
    uintptr_t at = oh_place_find(&owners[STOCK].place, size);
    if (at != 0) {
      pieces[n++] = (struct oh_reserve_piece){ at, size };
      left -= size;
    }
    else if (size == OH_CHUNK) break;
    else size = OH_ROUND_UP(size / 2, OH_CHUNK);
  }
  bool added = left == 0;
  for (size_t i = 0; i < n; i++) {
    if (left == 0) {
      added = oh_stock_add(pieces[i].base, pieces[i].base + pieces[i].bytes) && added;
      note_place(STOCK, pieces[i].base, pieces[i].bytes);
    }
    else oh_os_release(pieces[i].base, pieces[i].bytes);
  }
  pthread_mutex_unlock(&mutex);
  return added ? 0 : ENOMEM;
}

void oh_reserve_start(uintptr_t base)
{
  oh_table_start();
  oh_zone_start(base);
  frugal = oh_os_address_limit() / 64 < OH_CHUNK;
  for (int i = 0; i <= STOCK; i++) {
    struct oh_place *p = &owners[parts[i]].place;
    p->begin = p->next = oh_zone_part(i);
    p->end = oh_zone_part(i + 1);
  }
  uintptr_t from = oh_zone_part(0), to = oh_zone_part(RANGE);
  if (to > oh_zone_limit()) to = oh_zone_limit();
  uintptr_t regions, regions_end;
  if (oh_zone_regions(&regions, &regions_end)) {
    if (from > regions) from = regions;
    if (to < regions_end) to = regions_end;
  }
  if (oh_zone_usable()) oh_marked_start(from, to - from);
}

void oh_reserve_count(enum oh_space_id id, struct oh_reserve_counters *result)
{
  *result = (struct oh_reserve_counters){ 0 };
  pthread_mutex_lock(&mutex);
  for (int i = 0; i <= STOCK; i++) {
    if (i != (int)id && id != OH_SPACES) continue;
    result->chunks += owners[i].chunks;
    result->tainted += owners[i].place.tainted;
    result->reservations += owners[i].place.reservations;
    result->reserved += owners[i].reserved;
  }
  if (id == OH_SPACES) {
    result->ahead = oh_stock_bytes();
    result->reserved += result->ahead;
    result->chunks += result->ahead / OH_CHUNK;
  }
  pthread_mutex_unlock(&mutex);
}

void oh_reserve_validate(void)
{
  pthread_mutex_lock(&mutex);
  oh_stock_validate();
  pthread_mutex_unlock(&mutex);
}

void oh_reserve_lock(void) { pthread_mutex_lock(&mutex); }
void oh_reserve_unlock(void) { pthread_mutex_unlock(&mutex); }
