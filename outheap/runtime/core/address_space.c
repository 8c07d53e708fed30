/* SPDX-License-Identifier: MIT */
#include "address_space.h"
#include "extents.h"
#include <errno.h>
#include <pthread.h>

/* --- the zone ----------------------------------------------------------------------------------------------------- */

#if defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

static uintptr_t start, part;

/* The width of this process's address space, or of the table if that is less. The first stack is near the top; those
   of threads, one of which may be the caller, can be anywhere. */
static unsigned width(void)
{
  unsigned bits = 64 - (unsigned)__builtin_clzll(oh_os_stack());
  return bits < OH_ADDRESS_BITS ? bits : OH_ADDRESS_BITS;
}

void oh_zone_start(void)
{
  unsigned w = width();
  if (OH_SBRK) return; /* no place can be chosen */
  if (w < OH_CHUNK_LOG + 7) return; /* no room: parts would be smaller than two chunks */
  part = (uintptr_t)1 << (w - 6);
  start = ((uintptr_t)1 << (w - 2)) + OH_ROUND_DOWN(oh_os_random() & (((uintptr_t)1 << (w - 4)) - 1), OH_CHUNK);
}

bool oh_zone_usable(void)
{
#ifdef SANITIZED
  return false;
#else
  return start != 0;
#endif
}

uintptr_t oh_zone_part(int i) { return start + (uintptr_t)i * part; }
size_t oh_zone_part_size(void) { return part; }
bool oh_zone_regions(uintptr_t *begin, uintptr_t *end)
{
#if UINTPTR_MAX >> OH_ZONE_REGIONS_LOG != 0
  *begin = (uintptr_t)1 << OH_ZONE_REGIONS_LOG, *end = 2 * *begin;
  return oh_zone_usable() && part >= (uintptr_t)1 << (OH_ZONE_REGIONS_LOG - 3);
#else
  return *begin = *end = 0;
#endif
}

uintptr_t oh_zone_limit(void) { return OH_ADDRESS_LIMIT; }

/* --- the stock ---------------------------------------------------------------------------------------------------- */

/* The stock: whole chunks of address space that are reserved and not yet claimed for a space. */
static struct oh_extents stock;

/* Adds the whole chunks of [from, to). False: there are none, or no memory for the record; then they stay reserved and
   unused. */
static bool add_to_stock(uintptr_t from, uintptr_t to)
{
  from = OH_ROUND_UP(from, OH_CHUNK), to = OH_ROUND_DOWN(to, OH_CHUNK);
  size_t nodes = from < to ? (to - from) / OH_CHUNK / 2 + 1 : 0;
  if (from >= to || !oh_extents_supply(&stock, nodes)) return false;
  oh_extents_promise(&stock, nodes);
  oh_extents_add(&stock, from, to - from);
  return true;
}

/* Takes `bytes`, whole chunks, from the best fit among the extents of the stock, at its high or its low end. They have
   records in page.h. 0: none. */
static uintptr_t take_from_stock(size_t bytes, bool high)
{
  struct oh_extents_node *e = oh_extents_best(&stock, bytes);
  if (e == NULL) return 0;
  uintptr_t at = high ? oh_extents_end(e) - bytes : e->base;
  if (!oh_page_ensure(at, bytes)) return 0;
  oh_extents_remove(&stock, e, at, bytes);
  return at;
}

/* Ensures that the next `n` additions do not fail, each of up to `bytes` of address space in total. */
static bool prepare_stock(size_t bytes, size_t n)
{
  return oh_extents_supply(&stock, bytes / OH_CHUNK / 2 + 2 * n);
}

static void validate_stock(void)
{
  oh_extents_validate(&stock);
  OH_CHECK(stock.bytes % OH_CHUNK == 0);
  for (struct oh_extents_node *e = oh_extents_above(&stock, 0); e != NULL; e = oh_extents_above(&stock, e->base + 1))
    for (uintptr_t p = e->base; p < oh_extents_end(e); p += OH_PAGE) OH_CHECK((oh_page_bits(p) & OH_PAGE_OWNER) == 0);
}

/* --- places ------------------------------------------------------------------------------------------------------- */

/* Places in the address space are found, and reserved: first in a space's part of the zone, then in the parts of other
   spaces and above them, then where the system likes. Nothing is claimed in the table here, but places are only taken
   if all their chunks can be claimed, as far as that is known. The lock protects all that follows, and the stock. */

#define ATTEMPTS_MOST 32 /* at one request */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool frugal; /* address space is scarce: take what is needed, not whole chunks */
enum { STOCK = OH_SPACES };
static struct owner {
  uintptr_t part_begin, part_end; /* its part of the zone */
  uintptr_t next;                 /* no chunk of it below this address can be had any more */
  bool foreign;                   /* may take chunks that are foreign already */
  uintptr_t end;                  /* of the last piece */
  size_t reservations, tainted;   /* counters: attempts; chunks that were left alone since they were tainted */
  size_t chunks, reserved;        /* counters: claimed chunks, bytes */
} owners[OH_SPACES + 1] = { [OH_SPACE_FOREIGN] = { .foreign = true } };

/* The first chunk from `from` on, below `to`, that cannot be claimed any more, or `to`. */
static uintptr_t first_taken(struct owner const *o, uintptr_t from, uintptr_t to)
{
  for (; from < to; from += OH_CHUNK) {
    enum oh_kind k = oh_table_kind(from);
    if (k != OH_KIND_UNKNOWN && !(o->foreign && oh_kind_is_foreign(k))) return from;
  }
  return to;
}

/* Foreign, but not since it belongs to the space of foreign memory. */
static bool is_tainted(uintptr_t chunk)
{
  return oh_kind_is_foreign(oh_table_kind(chunk)) && (oh_page_bits(chunk) & OH_PAGE_OWNER) == 0;
}

/* Reserves [at, at + bytes), with records in page.h. `at` may be inside a chunk that is the space's already. False:
   errno = ENOMEM if there is no address space or memory; otherwise something is there. */
static bool reserve_at(struct owner *o, uintptr_t at, size_t bytes)
{
  OH_ASSERT_LOCKED(&mutex);
  uintptr_t end = at + bytes, c = OH_ROUND_UP(at, OH_CHUNK);
  if (end < at || end > oh_zone_limit() || first_taken(o, c, end) < end) return false;
  if (!oh_page_ensure(at, bytes)) {
    errno = ENOMEM;
    return false;
  }
  o->reservations++;
  return oh_os_reserve_at(at, bytes);
}

/* Is [at, at + bytes) vacant? What is reserved for that is released. */
static bool is_vacant(struct owner *o, uintptr_t at, size_t bytes)
{
  OH_ASSERT_LOCKED(&mutex);
  o->reservations++;
  if (!oh_os_reserve_at(at, bytes)) return false;
  oh_os_release(at, bytes);
  return true;
}

/* Tries places in [from, to), from below, at growing distances: what lies in the way may be large. 0: none; errno =
   ENOMEM if a limit is reached, and then `*last` is the place where that was seen. */
static uintptr_t find_between(struct owner *o, uintptr_t from, uintptr_t to, size_t bytes,
                              bool (*take)(struct owner *, uintptr_t, size_t), uintptr_t *last)
{
  uintptr_t at = from, step = OH_ROUND_UP(bytes, OH_CHUNK);
  if (to > oh_zone_limit()) to = oh_zone_limit();
  errno = 0;
  for (int i = 0; i < ATTEMPTS_MOST && bytes <= to && at <= to - bytes;) {
    uintptr_t taken = first_taken(o, at, at + bytes);
    if (taken < at + bytes) {
      if (taken == o->next) { /* no request finds room here any more */
        o->tainted += is_tainted(taken);
        o->next += OH_CHUNK;
      }
      at = taken + OH_CHUNK;
      continue;
    }
    *last = at;
    errno = 0;
    if (take(o, at, bytes)) return at;
    if (errno == ENOMEM) return 0; /* nothing is there */
    at += step;
    if (++i > 4) step *= 2;
  }
  return 0;
}

/* In the space's own part, or else in the second half of another, which other spaces hardly reach; or anywhere in it,
   if half a part is too small; or above all parts. */
static uintptr_t find_in_zone(struct owner *o, size_t bytes,
                              bool (*take)(struct owner *, uintptr_t, size_t), uintptr_t *last)
{
  if (!oh_zone_usable()) return 0;
  uintptr_t at = find_between(o, o->next, o->part_end, bytes, take, last);
  for (int i = 0; i <= OH_SPACES && at == 0 && errno != ENOMEM; i++) {
    size_t half = OH_ROUND_DOWN(oh_zone_part_size() / 2, OH_CHUNK);
    uintptr_t from = oh_zone_part(i) + (bytes <= half ? half : 0);
    at = find_between(o, from, oh_zone_part(i + 1), bytes, take, last);
  }
  if (at != 0 || errno == ENOMEM) return at;
  return find_between(o, oh_zone_part(OH_SPACES + 1), oh_zone_limit(), bytes, take, last);
}

/* `bytes` in the zone, a multiple of chunks, where nothing is mapped and nothing claimed; they are not reserved. 0: the
   zone cannot be had, has smaller parts, or there is no such place. */
static uintptr_t find_vacant(struct owner *o, size_t bytes)
{
  uintptr_t last = 0;
  if (bytes > oh_zone_part_size()) return 0;
  uintptr_t at = find_in_zone(o, bytes, is_vacant, &last);
  /* At a limit nobody can tell; probably nothing is there. */
  return at == 0 && errno == ENOMEM ? last : at;
}

/* Does this lie in the space's part of the zone, or is there no zone? */
static bool is_home(struct owner const *o, uintptr_t at, size_t bytes)
{
  return !oh_zone_usable() || (at >= o->part_begin && at <= o->part_end && bytes <= o->part_end - at);
}

static uintptr_t reserve_outside(struct owner *o, size_t bytes)
{
  OH_ASSERT_LOCKED(&mutex);
  for (int i = 0; i < ATTEMPTS_MOST; i++) {
    o->reservations++;
    uintptr_t at = oh_os_reserve(bytes, OH_CHUNK, oh_zone_limit()), good = at, taken;
    if (at == 0) return 0;
    if ((taken = first_taken(o, at, at + bytes)) >= at + bytes) {
      if (oh_page_ensure(at, bytes)) return at;
      oh_os_release(at, bytes);
      return 0;
    }
    /* Kept, so that the system chooses another place the next time; its good chunks go to the stock. */
    for (; good < at + bytes; good = taken + OH_CHUNK, taken = first_taken(o, good, at + bytes)) {
      add_to_stock(good, taken < at + bytes ? taken : at + bytes);
      o->tainted += taken < at + bytes && is_tainted(taken);
    }
  }
  return 0;
}

/* Reserves `bytes`, beginning at a chunk, with records in page.h. 0: no address space, or no memory. Cost: a system
   call, and at most some hundred where something else has taken the zone. */
static uintptr_t reserve_anywhere(struct owner *o, size_t bytes)
{
  uintptr_t last, at = find_in_zone(o, bytes, reserve_at, &last);
  return at != 0 ? at : reserve_outside(o, bytes);
}

/* --- reservation -------------------------------------------------------------------------------------------------- */

/* The order of the parts of the zone. The range of table.h has all that the marker follows pointers to, and all that
   must not come to lie where foreign pointers lead. */
static unsigned char const parts[OH_SPACES + 1] = {
  OH_SPACE_YOUNG, OH_SPACE_POOLS, OH_SPACE_BLOCKS, OH_SPACE_MARKED, STOCK, /* the range ends here */
  OH_SPACE_VALUES, OH_SPACE_FOREIGN
};
enum { RANGE = 5 };

/* The heap has left its part of the address space: that is counted. */
static void count_outside(int id, uintptr_t at, size_t bytes)
{
  if (!is_home(&owners[id], at, bytes)) oh_notice(OH_NOTICE_ZONE, bytes);
}

/* Claims [at, at + bytes), which is reserved, for a space. What remains beyond a tainted chunk goes to the stock. */
static bool claim(int id, uintptr_t at, size_t bytes, struct oh_reserve_piece *got)
{
  OH_ASSERT_LOCKED(&mutex);
  uintptr_t end = at + bytes, c = OH_ROUND_UP(at, OH_CHUNK);
  while (c < end && oh_table_claim(c, oh_spaces_kind(id))) c += OH_CHUNK, owners[id].chunks++;
  if (c < end) {
    owners[id].tainted++;
    add_to_stock(c + OH_CHUNK, end);
    if (c == at) return false;
    end = c;
  }
  if (oh_spaces_kind(id) == OH_KIND_MAJOR) oh_heap_range_include(at, end - at);
  *got = (struct oh_reserve_piece){ at, end - at };
  owners[id].reserved += end - at;
  return true;
}

/* Claims a new piece, unless there is none (at = 0). */
static bool claim_new(int id, uintptr_t at, size_t bytes, struct oh_reserve_piece *got)
{
  if (at == 0 || !claim(id, at, bytes, got)) return false;
  owners[id].end = got->base + got->bytes;
  count_outside(id, got->base, got->bytes);
  return true;
}

static bool claim_stock(int id, size_t bytes, struct oh_reserve_piece *got)
{
  size_t size = OH_ROUND_UP(bytes, OH_CHUNK);
  for (uintptr_t at; (at = take_from_stock(size, id == OH_SPACE_BLOCKS)) != 0;)
    if (claim(id, at, size, got)) return true;
  return false;
}

/* Whole chunks: `bytes`, or `less` at the end of the last piece. */
static bool reserve_whole(int id, size_t bytes, size_t less, struct oh_reserve_piece *got)
{
  struct owner *o = &owners[id];
  uintptr_t end = o->end;
  size_t here = OH_ROUND_UP(end + less, OH_CHUNK) - end, there = OH_ROUND_UP(bytes, OH_CHUNK);
  if (end != 0 && reserve_at(o, end, here) && claim_new(id, end, here, got)) return true;
  for (int i = 0; i < ATTEMPTS_MOST; i++) {
    uintptr_t at = reserve_anywhere(o, there);
    if (at == 0) return false;
    if (claim_new(id, at, there, got)) return true;
  }
  return false;
}

/* A part of a chunk, or of the last of several chunks: what can be had. Not in an area that others grow as well: they
   would have the rest of the chunk. */
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
    if (end != 0 && reserve_at(o, end, here) && claim_new(id, end, here, got)) return true;
    if (claim_new(id, reserve_anywhere(o, there), there, got)) return true;
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
           (!OH_SBRK && reserve_short(id, bytes, less, got));
    pthread_mutex_unlock(&mutex);
  }
  if (!done) errno = ENOMEM;
  return done;
}

/* --- ranges ----------------------------------------------------------------------------------------------------------
   */

static bool claim_chunks(int id, uintptr_t at, size_t bytes)
{
  OH_ASSERT_LOCKED(&mutex);
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
  for (int i = 0; i < ATTEMPTS_MOST && found == 0; i++) {
    uintptr_t at = find_vacant(&owners[id], size);
    if (at == 0) break;
    /* Otherwise a marker was faster; the chunks before that one stay ours, and unused. */
    if (claim_chunks(id, at, size)) found = at;
  }
  if (found != 0) count_outside(id, found, size);
  pthread_mutex_unlock(&mutex);
  return found;
}

bool oh_reserve_part(enum oh_space_id id, uintptr_t at, size_t bytes)
{
  pthread_mutex_lock(&mutex);
  bool done = oh_page_ensure(at, bytes) && oh_os_reserve_at(at, bytes);
  owners[id].reservations++;
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
  while (left != 0 && n < sizeof pieces / sizeof *pieces && prepare_stock(bytes, n + 2)) {
    if (size > left) size = left;
    uintptr_t at = reserve_anywhere(&owners[STOCK], size);
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
      added = add_to_stock(pieces[i].base, pieces[i].base + pieces[i].bytes) && added;
      count_outside(STOCK, pieces[i].base, pieces[i].bytes);
    }
    else oh_os_release(pieces[i].base, pieces[i].bytes);
  }
  pthread_mutex_unlock(&mutex);
  return added ? 0 : ENOMEM;
}

void oh_reserve_start(void)
{
  oh_table_start();
  oh_zone_start();
  frugal = !OH_SBRK && oh_os_address_limit() / 64 < OH_CHUNK;
  for (int i = 0; i <= STOCK; i++) {
    struct owner *o = &owners[parts[i]];
    o->part_begin = o->next = oh_zone_part(i);
    o->part_end = oh_zone_part(i + 1);
  }
  uintptr_t from = oh_zone_part(0), to = oh_zone_part(RANGE);
  if (to > oh_zone_limit()) to = oh_zone_limit();
  uintptr_t regions, regions_end;
  if (oh_zone_regions(&regions, &regions_end)) {
    if (from > regions) from = regions;
    if (to < regions_end) to = regions_end;
  }
  if (oh_zone_usable()) oh_heap_range_set(from, to - from);
#if OH_SBRK /* all that the area will be */
  from = OH_ROUND_DOWN(oh_os_top(), OH_CHUNK);
  if (from < oh_zone_limit()) oh_heap_range_set(from, oh_zone_limit() - from);
#endif
}

void oh_reserve_count(enum oh_space_id id, struct oh_reserve_counters *result)
{
  *result = (struct oh_reserve_counters){ 0 };
  pthread_mutex_lock(&mutex);
  for (int i = 0; i <= STOCK; i++) {
    if (i != (int)id && id != OH_SPACES) continue;
    result->chunks += owners[i].chunks;
    result->tainted += owners[i].tainted;
    result->reservations += owners[i].reservations;
    result->reserved += owners[i].reserved;
  }
  if (id == OH_SPACES) {
    result->ahead = stock.bytes;
    result->reserved += result->ahead;
    result->chunks += result->ahead / OH_CHUNK;
  }
  pthread_mutex_unlock(&mutex);
}

void oh_reserve_validate(void)
{
  pthread_mutex_lock(&mutex);
  validate_stock();
  pthread_mutex_unlock(&mutex);
}

void oh_reserve_lock(void) { pthread_mutex_lock(&mutex); }
void oh_reserve_unlock(void) { pthread_mutex_unlock(&mutex); }
