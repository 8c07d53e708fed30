/* SPDX-License-Identifier: MIT */
#include "space.h"
#include "hugetlb.h"
#include "space_memory.h"
#include <errno.h>
#include <string.h>

#define PROBE_FROM (OH_CHUNK * 16) /* from this size on the system is asked before address space is reserved */
#define GROW_ATTEMPTS_MOST 64
/* Of an area that grows only the end can be given back, at once (os_sbrk.c). */
#define TRIM_STEP (OH_SBRK ? OH_ADDRESS_LIMIT : 4 * OH_PAGE)

typedef struct oh_space_state space;

/* --- the lock, and the invariants (space_memory.h) ---------------------------------------------------------------- */

/* Aborts with a message if one does not hold. */
static void check(space *s)
{
  OH_ASSERT_LOCKED(&s->lock);
  enum oh_space_id id = oh_space_state_id(s);
  oh_extents_validate(&s->free);
  size_t reserved = 0, busy = 0, committed = 0, dirty = 0, split = 0, unused = 0;
  for (struct oh_space_state_piece *p = s->pieces; p != NULL; p = p->next) {
    uintptr_t end = p->piece.base + p->piece.bytes;
    OH_CHECK(p->piece.base % OH_PAGE == 0 && p->piece.bytes % OH_PAGE == 0 && p->piece.base < end);
    for (uintptr_t page = p->piece.base; page < end; page += OH_PAGE) {
      uint8_t bits = oh_page_bits(page);
      bool is_free = oh_extents_overlap(&s->free, page, OH_PAGE);
      OH_CHECK((bits & OH_PAGE_OWNER) == (unsigned)id + 1);
      OH_CHECK(!(bits & (OH_PAGE_HUGETLB | OH_PAGE_SPLIT)) || (bits & OH_PAGE_COMMITTED));
      OH_CHECK(!(bits & OH_PAGE_HUGETLB) || !(bits & OH_PAGE_SPLIT));
      OH_CHECK(!(bits & OH_PAGE_DIRTY) || (is_free && (bits & OH_PAGE_COMMITTED)));
      reserved += OH_PAGE;
      unused += is_free ? OH_PAGE : 0;
      busy += !is_free && (bits & OH_PAGE_COMMITTED) ? OH_PAGE : 0;
      committed += bits & OH_PAGE_COMMITTED ? OH_PAGE : 0;
      dirty += bits & OH_PAGE_DIRTY ? OH_PAGE : 0;
      split += bits & OH_PAGE_SPLIT ? OH_PAGE : 0;
    }
    enum oh_kind kind = oh_spaces_kind(id);
    for (uintptr_t c = OH_ROUND_DOWN(p->piece.base, OH_CHUNK); c < end; c += OH_CHUNK) {
      enum oh_kind k = oh_table_kind(c);
      OH_CHECK(kind == OH_KIND_FOREIGN ? oh_kind_is_foreign(k) : k == kind);
    }
  }
  OH_CHECK(reserved == s->reserved && unused == s->free.bytes && reserved - unused == s->used);
  OH_CHECK(busy == s->busy && committed == s->committed && dirty == s->dirty);
  OH_CHECK(split == s->split && split <= OH_SPACE_MEMORY_SPLIT_MOST && (split == 0 || s->huge));
}

static space *lock_space(enum oh_space_id id)
{
  pthread_mutex_lock(&oh_space_states[id].lock);
  return &oh_space_states[id];
}

static void unlock_space(space *s)
{
  if (OH_DEBUG) check(s);
  pthread_mutex_unlock(&s->lock);
}

/* --- address space ------------------------------------------------------------------------------------------------*/

static void add_piece(space *s, struct oh_reserve_piece p)
{
  oh_space_state_add_piece(s, p);
  oh_extents_promise(&s->free, p.bytes / OH_PAGE / 2 + 1);
  oh_extents_add(&s->free, p.base, p.bytes);
  oh_space_memory_advise_piece(s, p);
}

/* More address space, `bytes` in one piece unless a part of it turns out to be tainted. False: none. */
static bool grow(space *s, size_t bytes, size_t tail)
{
  struct oh_reserve_piece p;
  if (bytes > OH_ADDRESS_LIMIT) return false;
  if (!oh_space_state_prepare_piece(s)) return false;
  if (!oh_extents_supply(&s->free, (bytes + 2 * OH_CHUNK) / OH_PAGE / 2 + 1)) return false;
  if (!oh_reserve_chunks(oh_space_state_id(s), bytes, tail, &p)) return false;
  add_piece(s, p);
  return true;
}

static struct oh_extents_node *find(space *s, size_t bytes)
{
  OH_ASSERT_LOCKED(&s->lock);
  for (int i = 0; i < GROW_ATTEMPTS_MOST; i++) {
    struct oh_extents_node *e = oh_extents_best(&s->free, bytes);
    if (e != NULL) return e;
    uintptr_t end = oh_reserve_end(oh_space_state_id(s));
    struct oh_extents_node *last = end == 0 ? NULL : oh_extents_below(&s->free, end - 1);
    if (!grow(s, bytes, last != NULL && oh_extents_end(last) == end ? last->bytes : 0)) return NULL;
  }
  return NULL;
}

/* --- allocation ---------------------------------------------------------------------------------------------------*/

static uintptr_t alloc(enum oh_space_id id, size_t bytes, bool committed, bool *fresh)
{
  space *s = lock_space(id);
  uintptr_t base = 0;
  bool refused =
    bytes > OH_ADDRESS_LIMIT || (committed && bytes >= PROBE_FROM && oh_extents_best(&s->free, bytes) == NULL &&
                              !oh_os_would_commit(bytes));
  struct oh_extents_node *e = refused ? NULL : find(s, bytes);
  if (e != NULL) {
    uintptr_t end = oh_extents_end(e);
    base = e->base;
    /* From below, unless memory is committed at the other end only: new chunks may be placed below older ones. */
    if (!(oh_page_bits(base) & OH_PAGE_COMMITTED) && (oh_page_bits(end - OH_PAGE) & OH_PAGE_COMMITTED))
      base = end - bytes;
    if (committed && !oh_space_memory_commit(s, base, base + bytes, end))
      base = oh_space_memory_committed(s, bytes, &e);
  }
  else if (committed && !refused) base = oh_space_memory_committed(s, bytes, &e);
  if (base != 0) {
    if (fresh != NULL) *fresh = oh_page_first(base, base + bytes, OH_PAGE_DIRTY, true) == base + bytes;
    oh_extents_remove(&s->free, e, base, bytes);
    s->used += bytes;
    oh_space_memory_allocated(s, base, bytes);
  }
  unlock_space(s);
  return base;
}

/* What a thread that trims holds just now is missing. */
static bool wait_for_trim(pthread_mutex_t *trim)
{
  bool waited = pthread_mutex_trylock(trim) != 0;
  if (waited) pthread_mutex_lock(trim);
  pthread_mutex_unlock(trim);
  return waited;
}
void *oh_space_alloc(enum oh_space_id id, size_t bytes, bool committed, bool *fresh)
{
  if (bytes == 0 || bytes % OH_PAGE != 0) {
    errno = EINVAL;
    return NULL;
  }
  uintptr_t base = alloc(id, bytes, committed, fresh);
  if (base == 0 && wait_for_trim(&oh_space_states[id].trim)) base = alloc(id, bytes, committed, fresh);
  if (base == 0) {
    oh_notice(OH_NOTICE_MEMORY, bytes);
    errno = ENOMEM;
  }
  return (void *)base;
}

static bool is_used(space *s, uintptr_t start, size_t bytes)
{
  OH_ASSERT_LOCKED(&s->lock);
  uintptr_t last = start + bytes - 1;
  if (bytes == 0 || start % OH_PAGE != 0 || bytes % OH_PAGE != 0 || last < start ||
      oh_extents_overlap(&s->free, start, bytes))
    return false;
  for (uintptr_t p = start; p <= last; p += OH_PAGE)
    if ((oh_page_bits(p) & OH_PAGE_OWNER) != oh_space_state_id(s) + 1) return false;
  return true;
}

bool oh_space_is_used(enum oh_space_id id, void *start, size_t bytes)
{
  space *s = lock_space(id);
  bool ours = is_used(s, (uintptr_t)start, bytes);
  unlock_space(s);
  return ours;
}

bool oh_space_free_checked(enum oh_space_id id, void *start, size_t bytes)
{
  space *s = lock_space(id);
  bool ours = is_used(s, (uintptr_t)start, bytes);
  if (ours) {
    s->used -= bytes;
    oh_extents_add(&s->free, (uintptr_t)start, bytes);
    oh_space_memory_freed(s, (uintptr_t)start, bytes);
  }
  unlock_space(s);
  return ours;
}

void oh_space_free(enum oh_space_id id, void *start, size_t bytes)
{
  bool ours = oh_space_free_checked(id, start, bytes);
  OH_ASSERT(ours);
  (void)ours;
}

/* --- ranges ------------------------------------------------------------------------------------------------------- */

/* Ranges: addresses of a space of which nothing is reserved before it is committed. For minor heaps, since OCaml wants
   one range for the largest number of domains, of which most never exist: with s=32M a range of 32 GB.

   Invariants: ranges are disjoint, and their chunks are claimed for the space; what is reserved of a range is in pieces
   of the space, in use, whether the range is taken or not. */

/* Takes a range of `bytes`, a multiple of OH_PAGE: one that was given back and is large enough, or a new one. 0: there
   is no zone, no place in it, or no memory for the record. */
static uintptr_t take_range(space *s, size_t bytes)
{
  OH_ASSERT_LOCKED(&s->lock);
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
static void uncommit(space *s, uintptr_t from, uintptr_t end)
{
  while ((from = next_committed(from, end)) < end) {
    uintptr_t to = from;
    while (to < end && (oh_page_bits(to) & OH_PAGE_COMMITTED)) to += OH_PAGE;
    if (oh_os_uncommit((void *)from, to - from)) {
      size_t bytes = oh_page_clear(from, to, OH_PAGE_COMMITTED);
      oh_space_memory_no_hugetlb(from, to);
      oh_space_memory_unite(s, from, to, false);
      s->committed -= bytes;
      s->busy -= bytes;
      oh_space_memory_advise_piece(s, (struct oh_reserve_piece){ from, to - from });
    }
    from = to;
  }
}

/* Gives it back. False if no taken range begins there. What was reserved stays so, for the next one. */
static bool give_range(space *s, uintptr_t base)
{
  OH_ASSERT_LOCKED(&s->lock);
  for (struct oh_space_state_range *r = s->ranges; r != NULL; r = r->next)
    if (r->taken && r->base == base) {
      r->taken = false;
      uncommit(s, base, base + r->bytes);
      return true;
    }
  return false;
}

/* Is [from, to) in a taken range? */
static bool holds_range(space const *s, uintptr_t from, uintptr_t to)
{
  for (struct oh_space_state_range const *r = s->ranges; r != NULL; r = r->next)
    if (r->taken && r->base <= from && to <= r->base + r->bytes) return true;
  return false;
}

static void add_used(space *s, struct oh_reserve_piece p)
{
  oh_space_state_add_piece(s, p);
  s->used += p.bytes;
  oh_space_memory_advise_piece(s, p);
}

/* Reserves what is not reserved yet of [from, to), cut at large pages, if it is in a taken range. False: errno =
   ENOMEM; a part may have been reserved. */
static bool reserve_in_range(space *s, uintptr_t from, uintptr_t to)
{
  OH_ASSERT_LOCKED(&s->lock);
  if (s->ranges == NULL || !holds_range(s, from, to)) return true;
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

void *oh_space_take_range(enum oh_space_id id, size_t bytes)
{
  if (bytes == 0 || bytes > OH_ADDRESS_LIMIT || bytes % OH_PAGE != 0) {
    errno = EINVAL;
    return NULL;
  }
  space *s = lock_space(id);
  uintptr_t base = take_range(s, bytes);
  unlock_space(s);
  if (base == 0) errno = ENOMEM;
  return (void *)base;
}

bool oh_space_give_range(enum oh_space_id id, void *start)
{
  space *s = lock_space(id);
  bool ours = give_range(s, (uintptr_t)start);
  unlock_space(s);
  return ours;
}

/* --- parts of used pages ------------------------------------------------------------------------------------------*/

bool oh_space_commit(enum oh_space_id id, void *start, size_t bytes)
{
  if (bytes == 0) return true;
  uintptr_t from = OH_ROUND_DOWN((uintptr_t)start, OH_PAGE), to = OH_ROUND_UP((uintptr_t)start + bytes, OH_PAGE);
  space *s = lock_space(id);
  bool done = reserve_in_range(s, from, to);
  OH_ASSERT(!done || is_used(s, from, to - from));
  size_t before = s->committed;
  done = done && oh_space_memory_commit(s, from, to, to);
  s->busy += s->committed - before;
  oh_space_memory_consider_huge(s);
  unlock_space(s);
  if (!done) {
    oh_notice(OH_NOTICE_MEMORY, bytes);
    errno = ENOMEM;
  }
  return done;
}

/* A part of a page of the system's pool: as a whole it goes back, and ordinary memory takes its place; less than that
   stays. */
static space *purge_of_pool(space *s, uintptr_t from, uintptr_t to)
{
  enum oh_space_id id = oh_space_state_id(s);
  unlock_space(s);
  bool replaced = to - from == OH_PAGE && oh_hugetlb_replace((void *)from, OH_PAGE);
  if (!replaced) memset((void *)from, 0, to - from);
  s = lock_space(id);
  if (replaced) oh_space_memory_no_hugetlb(from, to);
  return s;
}

/* The pages are the caller's, so that their state does not change: the system call is made without the lock. */
void oh_space_purge(enum oh_space_id id, void *start, size_t bytes)
{
  space *s = lock_space(id);
  OH_ASSERT((uintptr_t)start % oh_os_page_size() == 0 && bytes % oh_os_page_size() == 0);
  uintptr_t first = OH_ROUND_DOWN((uintptr_t)start, OH_PAGE), last = OH_ROUND_UP((uintptr_t)start + bytes, OH_PAGE);
  OH_ASSERT(is_used(s, first, last - first) || holds_range(s, first, last));
  /* As far as it is committed: parts of a range may have no records. */
  for (uintptr_t from = (uintptr_t)start, end = from + bytes; from < end;) {
    uintptr_t page = OH_ROUND_DOWN(from, OH_PAGE), to = page;
    while (to < end && (oh_page_bits(to) & OH_PAGE_COMMITTED)) to += OH_PAGE;
    if (to == page) {
      from = page + OH_PAGE;
      continue;
    }
    if (to > end) to = end;
    s->purges++;
    uintptr_t of_pool = oh_page_first(page, OH_ROUND_UP(to, OH_PAGE), OH_PAGE_HUGETLB, true);
    bool give = from < of_pool;
    if (give && of_pool < to) to = of_pool;
    if (give) {
      if (from != page) oh_space_memory_split(s, page);
      if (to % OH_PAGE != 0) oh_space_memory_split(s, OH_ROUND_DOWN(to, OH_PAGE));
      unlock_space(s);
      if (!oh_os_purge((void *)from, to - from)) memset((void *)from, 0, to - from);
      s = lock_space(id);
    }
    else s = purge_of_pool(s, from, to = to < page + OH_PAGE ? to : page + OH_PAGE);
    from = to;
  }
  unlock_space(s);
}

size_t oh_space_split(enum oh_space_id id) { return oh_load_relaxed(&oh_space_states[id].split); }

void oh_space_unite(enum oh_space_id id, void *start, size_t bytes)
{
  uintptr_t from = (uintptr_t)start, to = from + bytes;
  if (oh_page_first(from, to, OH_PAGE_SPLIT, true) == to) return;
  space *s = lock_space(id);
  OH_ASSERT(from % OH_PAGE == 0 && bytes % OH_PAGE == 0 && is_used(s, from, bytes));
  oh_space_memory_unite(s, from, to, true);
  unlock_space(s);
}

_Thread_local bool const *oh_space_ends;

static void lock_trim(space *s)
{
  if (pthread_mutex_trylock(&s->trim) == 0) return;
  (void)oh_fetch_add_relaxed(&s->waiting, 1);
  pthread_mutex_lock(&s->trim);
  (void)oh_fetch_add_relaxed(&s->waiting, (size_t)-1);
}

/* Between two steps. This thread does not count as one that waits: of two trims the second goes to its
   end, and then the first finds nothing. */
static void let_others_in(space *s)
{
  OH_ASSERT_LOCKED(&s->trim);
  if (oh_load_relaxed(&s->waiting) == 0) return;
  pthread_mutex_unlock(&s->trim);
  while (oh_load_relaxed(&s->waiting) != 0) oh_os_yield();
  pthread_mutex_lock(&s->trim);
}

/* Purges so many bytes of dirty memory, from the highest address on, in steps, so that others need not wait for the
   system. Result: the bytes that have gone back. */
static size_t purge_in_steps(space *s, size_t bytes)
{
  OH_ASSERT_LOCKED(&s->trim);
  enum oh_space_id id = oh_space_state_id(s);
  uintptr_t top = UINTPTR_MAX;
  size_t given = 0;
  while (bytes != 0 && !oh_space_is_over()) {
    struct oh_space_memory_run r;
    lock_space(id);
    bool found = oh_space_memory_hold(s, top, bytes < TRIM_STEP ? bytes : TRIM_STEP, &r);
    unlock_space(s);
    if (!found) break;
    enum oh_space_memory_given how = oh_space_memory_give_back(r);
    lock_space(id);
    given += oh_space_memory_release(s, r, how);
    unlock_space(s);
    bytes -= r.bytes;
    top = r.base;
    let_others_in(s);
  }
  return given;
}

size_t oh_space_trim(enum oh_space_id id)
{
  space *s = &oh_space_states[id];
  lock_trim(s);
  size_t given = purge_in_steps(s, OH_ROUND_DOWN(SIZE_MAX, OH_PAGE));
  pthread_mutex_unlock(&s->trim);
  return given;
}

/* What is left when it ends early stays until it is free again: there is no reclaim thread then. */
size_t oh_space_decay(enum oh_space_id id)
{
  space *s = &oh_space_states[id];
  lock_trim(s);
  lock_space(id);
  size_t bytes = oh_space_memory_decay(s);
  unlock_space(s);
  size_t given = purge_in_steps(s, bytes);
  pthread_mutex_unlock(&s->trim);
  return given;
}

void oh_space_delay(enum oh_space_id id, bool delayed)
{
  space *s = lock_space(id);
  s->delayed = delayed;
  unlock_space(s);
}

size_t oh_space_age(enum oh_space_id id)
{
  space *s = lock_space(id);
  size_t left = oh_space_memory_age(s);
  unlock_space(s);
  return left;
}

/* --- fork ---------------------------------------------------------------------------------------------------------
 */

void oh_space_fork(void)
{
  if (oh_space_memory_hugetlb() != 0 && !oh_hugetlb_before_fork())
    oh_log("no pipe for a fork: its child copies huge pages while the parent goes on");
}

void oh_space_fork_done(void)
{
  if (oh_space_memory_hugetlb() != 0) oh_hugetlb_wait();
}

void oh_space_forked(void)
{
  for (int i = 0; i < OH_SPACES; i++) oh_store_relaxed(&oh_space_states[i].waiting, (size_t)0); /* they are not here */
  if (oh_space_memory_hugetlb() == 0) return;
  for (int i = 0; i < OH_SPACES; i++)
    for (struct oh_space_state_piece *p = oh_space_states[i].pieces; p != NULL; p = p->next)
      for (uintptr_t from = p->piece.base, end = from + p->piece.bytes, to;
           (from = oh_page_first(from, end, OH_PAGE_HUGETLB, true)) < end; from = to) {
        to = oh_page_first(from, end, OH_PAGE_HUGETLB, false);
        oh_hugetlb_copy((void *)from, to - from);
        oh_space_memory_no_hugetlb(from, to);
      }
  oh_hugetlb_copied();
}

/* --- account ------------------------------------------------------------------------------------------------------*/

void oh_space_count(enum oh_space_id id, struct oh_space_counters *result)
{
  struct oh_reserve_counters r;
  space *s = lock_space(id);
  oh_reserve_count(id, &r);
  *result = (struct oh_space_counters){
    .reserved = s->reserved,
    .used = s->used,
    .committed = s->committed,
    .dirty = s->dirty,
    .commits = s->commits,
    .purges = s->purges,
    .advises = s->advises,
    .reservations = r.reservations,
    .tainted = r.tainted,
  };
  unlock_space(s);
}

void oh_space_validate(void)
{
  for (int i = 0; i < OH_SPACES; i++) {
    space *s = lock_space(i);
    check(s);
    pthread_mutex_unlock(&s->lock);
  }
  oh_reserve_validate();
}

void oh_space_lock_all(void)
{
  for (int i = 0; i < OH_SPACES; i++) {
    lock_trim(&oh_space_states[i]);
    pthread_mutex_lock(&oh_space_states[i].lock);
  }
}

void oh_space_unlock_all(void)
{
  for (int i = OH_SPACES; i-- > 0;) {
    pthread_mutex_unlock(&oh_space_states[i].lock);
    pthread_mutex_unlock(&oh_space_states[i].trim);
  }
}

