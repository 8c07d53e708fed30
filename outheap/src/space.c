/* SPDX-License-Identifier: MIT */
#include "space_impl.h"
#include "check.h"
#include "os.h"
#include "pages.h"
#include "settings.h"
#include <errno.h>
#include <string.h>

typedef struct oh_space space;
#define SPACE { .lock = PTHREAD_MUTEX_INITIALIZER }
struct oh_space oh_spaces[OH_SPACES] = { SPACE, SPACE, SPACE, SPACE, SPACE, SPACE };
_Static_assert(OH_SPACES == 6, "initialisers");

#define AHEAD (16 * OH_PAGE)         /* made accessible beyond what is asked for, at most */
#define PROBE (OH_CHUNK * 16)        /* from this size on the system is asked in advance */
#define TRIES 64

static int id_of(space *s) { return (int)(s - oh_spaces); }
static space *lock_space(enum oh_space_id id)
{
  pthread_mutex_lock(&oh_spaces[id].lock);
  return &oh_spaces[id];
}
static void unlock_space(space *s)
{
#if OH_DEBUG
  oh_space_validate(id_of(s));
#endif
  pthread_mutex_unlock(&s->lock);
}

static void advise(space *s, uintptr_t base, size_t bytes, bool wanted) { s->advises += oh_os_huge((void *)base, bytes, wanted); }

/* Once the space has grown enough, huge pages for all of it, now and later: advice for whole pieces, before they are accessible, makes no
   differences within a mapping. */
static void consider_huge(space *s)
{
  enum oh_thp thp = oh_settings.thp[id_of(s)];
  if (s->huge || thp == OH_THP_OFF || (thp == OH_THP_ADVISE && s->busy < oh_settings.thp_from)) return;
  s->huge = true;
  for (struct oh_piece_record *p = s->pieces; p != NULL; p = p->next) advise(s, p->piece.base, p->piece.bytes, true);
}

/* --- address space ------------------------------------------------------------------------------------------------- */

static void add_piece(space *s, struct oh_piece p)
{
  if (s->pieces != NULL && s->pieces->piece.base + s->pieces->piece.bytes == p.base) s->pieces->piece.bytes += p.bytes;
  else {
    struct oh_piece_record *r = s->spare;
    s->spare = NULL;
    *r = (struct oh_piece_record){ s->pieces, p };
    s->pieces = r;
  }
  s->reserved += p.bytes;
  oh_bits_set(p.base, p.base + p.bytes, (uint8_t)(id_of(s) + 1));
  oh_extents_promise(&s->free, p.bytes / OH_PAGE / 2 + 1);
  oh_extents_give(&s->free, p.base, p.bytes);
  if (s->huge) advise(s, p.base, p.bytes, true);
  else if (oh_settings.thp[id_of(s)] == OH_THP_OFF) advise(s, p.base, p.bytes, false);
}

/* More address space, `bytes` in one piece unless it turns out to be tainted. False: none. */
static bool grow(space *s, size_t bytes, size_t tail)
{
  struct oh_piece p;
  if (bytes > (size_t)1 << OH_ADDRESS_BITS) return false;
  if (s->spare == NULL) s->spare = oh_os_metadata(sizeof *s->spare);
  if (s->spare == NULL || !oh_extents_supply(&s->free, (bytes + 2 * OH_CHUNK) / OH_PAGE / 2 + 1)) return false;
  if (!oh_reserve(id_of(s), bytes, tail, &p)) return false;
  add_piece(s, p);
  return true;
}

static struct oh_extent *find(space *s, size_t bytes)
{
  for (int i = 0; i < TRIES; i++) {
    struct oh_extent *e = oh_extents_best(&s->free, bytes);
    if (e != NULL) return e;
    uintptr_t end = oh_reserve_end(id_of(s));
    struct oh_extent *last = end == 0 ? NULL : oh_extents_below(&s->free, end - 1);
    if (!grow(s, bytes, last != NULL && oh_extent_end(last) == end ? last->bytes : 0)) return NULL;
  }
  return NULL;
}

/* --- memory -------------------------------------------------------------------------------------------------------- */

static bool commit_run(space *s, uintptr_t from, uintptr_t to)
{
  s->commits++;
  if (!oh_os_commit((void *)from, to - from)) return false;
  s->committed += oh_bits_set(from, to, OH_COMMITTED);
  return true;
}

/* Makes [from, to) accessible, and if convenient more, up to `most`: the steps grow with the space. */
static bool commit(space *s, uintptr_t from, uintptr_t to, uintptr_t most)
{
  size_t ahead = OH_ROUND_DOWN(s->committed / 4, OH_PAGE);
  if (ahead > AHEAD) ahead = AHEAD;
  for (;;) {
    from = oh_bits_first(from, to, OH_COMMITTED, false);
    if (from >= to) return true;
    uintptr_t end = oh_bits_first(from, to, OH_COMMITTED, true);
    uintptr_t further = end < to || most <= to ? end : oh_bits_first(to, most - to < ahead ? most : to + ahead, OH_COMMITTED, true);
    if (!(further > end && commit_run(s, from, further)) && !commit_run(s, from, end)) return false;
    from = end;
  }
}

/* A part of a free extent that is accessible already: the last resort. 0 if there is none. */
static uintptr_t committed_part(space *s, size_t bytes, struct oh_extent **found)
{
  for (struct oh_extent *e = oh_extents_above(&s->free, 0); e != NULL; e = oh_extents_above(&s->free, e->base + 1))
    for (uintptr_t from = e->base, end = oh_extent_end(e); (from = oh_bits_first(from, end, OH_COMMITTED, true)) < end;) {
      uintptr_t to = oh_bits_first(from, end, OH_COMMITTED, false);
      if (to - from >= bytes) return *found = e, from;
      from = to;
    }
  return 0;
}

/* Gives dirty memory back, from the highest address on, until `target` bytes of it are left. Result: bytes. */
static size_t trim(space *s, size_t target, uintptr_t top)
{
  size_t before = s->dirty;
  while (s->dirty > target && top != 0) {
    struct oh_extent *e = oh_extents_below(&s->free, top - 1);
    if (e == NULL) {
      top = 0;
      break;
    }
    uintptr_t end = oh_extent_end(e) < top ? oh_extent_end(e) : top;
    end = oh_bits_last(e->base, end, OH_DIRTY, true);
    top = oh_bits_last(e->base, end, OH_DIRTY, false);
    size_t over = OH_ROUND_UP(s->dirty - target, OH_PAGE);
    if (end - top > over) top = end - over;
    if (top == end) continue; /* nothing in this extent */
    s->decommits++;
    if (oh_os_discard((void *)top, end - top)) s->dirty -= oh_bits_clear(top, end, OH_DIRTY);
  }
  s->dirty_end = s->dirty == 0 ? 0 : top;
  return before - s->dirty;
}

static size_t at_least_keep(size_t bytes) { return bytes > oh_settings.keep ? bytes : oh_settings.keep; }

/* Hysteresis. An epoch ends when as much has been given out in it as is in use. Dirty memory that was not needed at any time of the epoch,
   the least that there was, goes back but for an allowance; what a program frees and takes again in each cycle of the collector stays. */
static void end_epoch(space *s, size_t taken)
{
  if (s->dirty < s->least) s->least = s->dirty;
  if ((s->taken += taken) < s->busy) return;
  size_t allowance = at_least_keep(s->busy / 100 * oh_settings.keep_share), over = s->least > allowance ? s->least - allowance : 0;
  if (over != 0) trim(s, s->dirty - over, s->dirty_end);
  s->least = s->dirty;
  s->taken = 0;
}

static void use(space *s, struct oh_extent *e, uintptr_t base, size_t bytes)
{
  oh_extents_cut(&s->free, e, base, bytes);
  s->dirty -= oh_bits_clear(base, base + bytes, OH_DIRTY);
  s->seen += oh_bits_set(base, base + bytes, OH_SEEN);
  s->used += bytes;
  s->busy += oh_bits_count(base, base + bytes, OH_COMMITTED);
  consider_huge(s);
  end_epoch(s, bytes);
}

void *oh_pages_take(enum oh_space_id id, size_t bytes, bool committed, bool *fresh)
{
  if (bytes == 0 || bytes % OH_PAGE != 0) {
    errno = EINVAL;
    return NULL;
  }
  oh_start();
  space *s = lock_space(id);
  uintptr_t base = 0;
  bool refused = bytes > (size_t)1 << OH_ADDRESS_BITS ||
                 (committed && bytes >= PROBE && oh_extents_best(&s->free, bytes) == NULL && !oh_os_would_commit(bytes));
  struct oh_extent *e = refused ? NULL : find(s, bytes);
  if (e != NULL) {
    uintptr_t end = oh_extent_end(e);
    base = e->base;
    /* From below, unless memory lies ready at the other end only: new chunks may come to lie below older ones. */
    if (!(oh_page_bits(base) & OH_COMMITTED) && (oh_page_bits(end - OH_PAGE) & OH_COMMITTED)) base = end - bytes;
    if (committed && !commit(s, base, base + bytes, end)) base = committed_part(s, bytes, &e);
  }
  else if (committed && !refused) base = committed_part(s, bytes, &e);
  if (base != 0) {
    if (fresh != NULL) *fresh = oh_bits_first(base, base + bytes, OH_DIRTY, true) == base + bytes;
    use(s, e, base, bytes);
  }
  unlock_space(s);
  if (base == 0) errno = ENOMEM;
  return (void *)base;
}

static bool is_used(space *s, uintptr_t start, size_t bytes)
{
  uintptr_t last = start + bytes - 1;
  if (bytes == 0 || start % OH_PAGE != 0 || bytes % OH_PAGE != 0 || last < start || oh_extents_meet(&s->free, start, bytes)) return false;
  for (uintptr_t p = start; p <= last; p += OH_PAGE)
    if ((oh_page_bits(p) & OH_OWNER) != id_of(s) + 1) return false;
  return true;
}

static void give(space *s, uintptr_t base, size_t bytes)
{
  uintptr_t end = base + bytes;
  s->used -= bytes;
  for (uintptr_t from = base; (from = oh_bits_first(from, end, OH_COMMITTED, true)) < end;) {
    uintptr_t to = oh_bits_first(from, end, OH_COMMITTED, false);
    s->busy -= to - from;
    s->dirty += oh_bits_set(from, to, OH_DIRTY);
    if (to > s->dirty_end) s->dirty_end = to;
    from = to;
  }
  oh_extents_give(&s->free, base, bytes);
  size_t share = oh_settings.slack > oh_settings.keep_share ? oh_settings.slack : oh_settings.keep_share, most = at_least_keep(s->busy / 100 * share);
  if (s->dirty > most) trim(s, most - most / 4, s->dirty_end);
}

bool oh_pages_are_used(enum oh_space_id id, void *start, size_t bytes)
{
  space *s = lock_space(id);
  bool ours = is_used(s, (uintptr_t)start, bytes);
  unlock_space(s);
  return ours;
}

bool oh_pages_give_checked(enum oh_space_id id, void *start, size_t bytes)
{
  space *s = lock_space(id);
  bool ours = is_used(s, (uintptr_t)start, bytes);
  if (ours) give(s, (uintptr_t)start, bytes);
  unlock_space(s);
  return ours;
}

void oh_pages_give(enum oh_space_id id, void *start, size_t bytes)
{
  bool ours = oh_pages_give_checked(id, start, bytes);
  OH_ASSERT(ours);
  (void)ours;
}

bool oh_pages_commit(enum oh_space_id id, void *start, size_t bytes)
{
  if (bytes == 0) return true;
  uintptr_t from = OH_ROUND_DOWN((uintptr_t)start, OH_PAGE), to = OH_ROUND_UP((uintptr_t)start + bytes, OH_PAGE);
  space *s = lock_space(id);
  OH_ASSERT(is_used(s, from, to - from));
  size_t before = s->committed;
  bool done = commit(s, from, to, to);
  s->busy += s->committed - before;
  consider_huge(s);
  unlock_space(s);
  if (!done) errno = ENOMEM;
  return done;
}

void oh_pages_discard(enum oh_space_id id, void *start, size_t bytes)
{
  space *s = lock_space(id);
  OH_ASSERT((uintptr_t)start % oh_os_page() == 0 && bytes % oh_os_page() == 0);
  OH_ASSERT(is_used(s, OH_ROUND_DOWN((uintptr_t)start, OH_PAGE), OH_ROUND_UP((uintptr_t)start % OH_PAGE + bytes, OH_PAGE)));
  /* As far as it is accessible. */
  for (uintptr_t from = (uintptr_t)start, end = from + bytes; from < end;) {
    uintptr_t page = OH_ROUND_DOWN(from, OH_PAGE), last = OH_ROUND_UP(end, OH_PAGE);
    uintptr_t first = oh_bits_first(page, last, OH_COMMITTED, true), to = oh_bits_first(first, last, OH_COMMITTED, false);
    if (first > from) from = first;
    if (to > end) to = end;
    if (from >= to) break;
    s->decommits++;
    if (!oh_os_discard((void *)from, to - from)) memset((void *)from, 0, to - from);
    from = to;
  }
  unlock_space(s);
}

size_t oh_pages_trim(enum oh_space_id id)
{
  space *s = lock_space(id);
  size_t bytes = trim(s, 0, UINTPTR_MAX);
  unlock_space(s);
  return bytes;
}

int oh_pages_reserve(enum oh_space_id id, size_t bytes)
{
  if (bytes == 0 || bytes > (size_t)1 << OH_ADDRESS_BITS) return EINVAL;
  bytes = OH_ROUND_UP(bytes, OH_PAGE);
  oh_start();
  space *s = lock_space(id);
  size_t before = s->reserved;
  bool done = true;
  for (int i = 0; done && i < TRIES && s->reserved - before < bytes; i++) done = grow(s, bytes - (s->reserved - before), 0);
  done = s->reserved - before >= bytes;
  unlock_space(s);
  return done ? 0 : ENOMEM;
}
