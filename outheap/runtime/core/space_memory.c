/* SPDX-License-Identifier: MIT */
#include "space_memory.h"
#include "hugetlb.h"
#include "settings.h"

/* --- the state of a space ----------------------------------------------------------------------------------------- */

#define FREE PTHREAD_MUTEX_INITIALIZER
#define STATE(name, kind, thp) [OH_SPACE_##name] = { .trim = FREE, .lock = FREE },
struct oh_space_state oh_space_states[OH_SPACES] = { OH_SPACES_LIST(STATE) };

bool oh_space_state_prepare_piece(struct oh_space_state *s)
{
  OH_ASSERT_LOCKED(&s->lock);
  if (s->spare == NULL) s->spare = oh_metadata_alloc(sizeof *s->spare);
  return s->spare != NULL;
}

void oh_space_state_add_piece(struct oh_space_state *s, struct oh_reserve_piece p)
{
  OH_ASSERT_LOCKED(&s->lock);
  if (s->pieces != NULL && s->pieces->piece.base + s->pieces->piece.bytes == p.base) s->pieces->piece.bytes += p.bytes;
  else {
    struct oh_space_state_piece *r = s->spare;
    s->spare = NULL;
    *r = (struct oh_space_state_piece){ s->pieces, p };
    s->pieces = r;
  }
  s->reserved += p.bytes;
  oh_page_set(p.base, p.base + p.bytes, (uint8_t)(oh_space_state_id(s) + 1));
}

#define EPOCH_CYCLES_MOST 4              /* cycles of the collector in an epoch */
#define EPOCH_PURGE_MOST (32 * OH_PAGE)  /* bytes that are given back when an epoch ends by its cycles */
#define COMMIT_AHEAD_MOST (16 * OH_PAGE) /* bytes that are committed beyond what is asked for */

/* --- huge pages ------------------------------------------------------------------------------------------------------
   */

static void advise(struct oh_space_state *s, struct oh_reserve_piece p, bool huge)
{
  bool done = oh_os_advise_huge((void *)p.base, p.bytes, huge);
  s->advises += done;
  if (huge) s->granted = done;
  if (huge && !done) oh_notice(OH_NOTICE_HUGE, p.bytes);
}

void oh_space_memory_advise_piece(struct oh_space_state *s, struct oh_reserve_piece p)
{
  OH_ASSERT_LOCKED(&s->lock);
  if (s->huge) advise(s, p, true);
  else if (oh_settings.thp[oh_space_state_id(s)] == OH_SETTINGS_THP_OFF) advise(s, p, false);
}

/* Advice for whole pieces, present and future, before they are committed, makes no differences within a mapping. */
void oh_space_memory_consider_huge(struct oh_space_state *s)
{
  OH_ASSERT_LOCKED(&s->lock);
  enum oh_settings_thp thp = oh_settings.thp[oh_space_state_id(s)];
  if (s->huge || thp == OH_SETTINGS_THP_OFF ||
      (thp == OH_SETTINGS_THP_ADVISE && s->busy < oh_settings.thp_from && !oh_settings.hugetlb))
    return;
  s->huge = true;
  for (struct oh_space_state_piece *p = s->pieces; p != NULL; p = p->next) advise(s, p->piece, true);
}

void oh_space_memory_split(struct oh_space_state *s, uintptr_t page)
{
  OH_ASSERT_LOCKED(&s->lock);
  uint8_t bits = oh_page_bits(page) & (OH_PAGE_COMMITTED | OH_PAGE_HUGETLB | OH_PAGE_SPLIT);
  if (!s->granted || bits != OH_PAGE_COMMITTED || s->split >= OH_SPACE_MEMORY_SPLIT_MOST) return;
  if (!oh_os_refuse_huge((void *)page, OH_PAGE)) return;
  s->advises++;
  oh_store_relaxed(&s->split, s->split + oh_page_set(page, page + OH_PAGE, OH_PAGE_SPLIT));
}

void oh_space_memory_unite(struct oh_space_state *s, uintptr_t from, uintptr_t to, bool advise)
{
  OH_ASSERT_LOCKED(&s->lock);
  while (s->split != 0 && (from = oh_page_first(from, to, OH_PAGE_SPLIT, true)) < to) {
    uintptr_t end = oh_page_first(from, to, OH_PAGE_SPLIT, false);
    if (advise) s->advises += oh_os_advise_huge((void *)from, end - from, true);
    oh_store_relaxed(&s->split, s->split - oh_page_clear(from, end, OH_PAGE_SPLIT));
    from = end;
  }
}

/* --- commit ----------------------------------------------------------------------------------------------------------
   */

static size_t hugetlb; /* bytes (atomic) */

size_t oh_space_memory_hugetlb(void) { return oh_load_relaxed(&hugetlb); }

void oh_space_memory_no_hugetlb(uintptr_t from, uintptr_t to)
{
  oh_fetch_add_relaxed(&hugetlb, 0 - oh_page_clear(from, to, OH_PAGE_HUGETLB));
}

/* Pages of the pool go where huge pages go, from the first page on. */
static bool wants_hugetlb(struct oh_space_state const *s)
{
  return oh_settings.hugetlb && oh_settings.thp[oh_space_state_id(s)] != OH_SETTINGS_THP_OFF;
}

/* Takes as many pages as the pool still has, by halves of what it did not have, from the first page on. Result: the end
   of them. */
static uintptr_t commit_from_pool(struct oh_space_state *s, uintptr_t from, uintptr_t to)
{
  for (size_t bytes = to - from; from < to && bytes != 0;) {
    uintptr_t end = to - from < bytes ? to : from + bytes;
    if (oh_hugetlb_commit((void *)from, end - from)) {
      s->committed += oh_page_set(from, end, OH_PAGE_COMMITTED);
      oh_fetch_add_relaxed(&hugetlb, oh_page_set(from, end, OH_PAGE_HUGETLB));
      from = end;
    }
    else bytes = OH_ROUND_DOWN((end - from) / 2, OH_PAGE);
  }
  return from;
}

/* Of a run of which nothing is committed, or only the beginning, by an attempt for more that failed. */
static bool commit_run(struct oh_space_state *s, uintptr_t from, uintptr_t to)
{
  s->commits++;
  if (wants_hugetlb(s)) {
    from = commit_from_pool(s, oh_page_first(from, to, OH_PAGE_COMMITTED, false), to);
    if (from >= to) return true;
    oh_notice(OH_NOTICE_HUGETLB, to - from);
  }
  if (!oh_os_commit((void *)from, to - from)) return false;
  s->committed += oh_page_set(from, to, OH_PAGE_COMMITTED);
  return true;
}

bool oh_space_memory_commit(struct oh_space_state *s, uintptr_t from, uintptr_t to, uintptr_t most)
{
  OH_ASSERT_LOCKED(&s->lock);
  if (wants_hugetlb(s)) oh_space_memory_consider_huge(s); /* no advice can be given for pages of the pool */
  size_t ahead = oh_os_is_strict() ? 0 : OH_ROUND_DOWN(s->committed / 4, OH_PAGE); /* it would be charged */
  if (ahead > COMMIT_AHEAD_MOST) ahead = COMMIT_AHEAD_MOST;
  for (;;) {
    from = oh_page_first(from, to, OH_PAGE_COMMITTED, false);
    if (from >= to) return true;
    uintptr_t end = oh_page_first(from, to, OH_PAGE_COMMITTED, true);
    uintptr_t further =
      end < to || most <= to ? end : oh_page_first(to, most - to < ahead ? most : to + ahead, OH_PAGE_COMMITTED, true);
    if (!(further > end && commit_run(s, from, further)) && !commit_run(s, from, end)) return false;
    from = end;
  }
}

uintptr_t oh_space_memory_committed(struct oh_space_state *s, size_t bytes, struct oh_extents_node **found)
{
  OH_ASSERT_LOCKED(&s->lock);
  for (struct oh_extents_node *e = oh_extents_above(&s->free, 0); e != NULL;
       e = oh_extents_above(&s->free, e->base + 1))
    for (uintptr_t from = e->base, end = oh_extents_end(e);
         (from = oh_page_first(from, end, OH_PAGE_COMMITTED, true)) < end;) {
      uintptr_t to = oh_page_first(from, end, OH_PAGE_COMMITTED, false);
      if (to - from >= bytes) return *found = e, from;
      from = to;
    }
  return 0;
}

/* --- purge -----------------------------------------------------------------------------------------------------------
   */

/* The last dirty run below `top`; of a longer one the end. */
static bool find_last_dirty(struct oh_space_state *s, uintptr_t top, size_t most, struct oh_space_memory_run *r)
{
  struct oh_extents_node *e;
  for (; top != 0 && (e = oh_extents_below(&s->free, top - 1)) != NULL; top = e->base) {
    uintptr_t end = oh_extents_end(e) < top ? oh_extents_end(e) : top;
    end = oh_page_last(e->base, end, OH_PAGE_DIRTY, true);
    uintptr_t base = oh_page_last(e->base, end, OH_PAGE_DIRTY, false);
    if (base == end) continue;
    *r = (struct oh_space_memory_run){ base, end - base };
    if (r->bytes > most) *r = (struct oh_space_memory_run){ end - most, most };
    return true;
  }
  return false;
}

enum oh_space_memory_given oh_space_memory_give_back(struct oh_space_memory_run r)
{
  uintptr_t end = r.base + r.bytes;
  bool of_pool = oh_page_first(r.base, end, OH_PAGE_HUGETLB, true) < end;
  if ((of_pool || oh_os_is_strict()) && oh_os_uncommit((void *)r.base, r.bytes)) return OH_SPACE_MEMORY_UNCOMMITTED;
  if (of_pool) return OH_SPACE_MEMORY_REFUSED;
  return oh_os_purge((void *)r.base, r.bytes) ? OH_SPACE_MEMORY_PURGED : OH_SPACE_MEMORY_REFUSED;
}

static void count_uncommitted(struct oh_space_state *s, struct oh_space_memory_run r)
{
  oh_space_memory_unite(s, r.base, r.base + r.bytes, false);
  s->committed -= oh_page_clear(r.base, r.base + r.bytes, OH_PAGE_COMMITTED);
  oh_space_memory_no_hugetlb(r.base, r.base + r.bytes);
  oh_space_memory_advise_piece(s, (struct oh_reserve_piece){ r.base, r.bytes });
}

/* From the highest address on, until `target` bytes of dirty memory are left. */
static void purge_from_top(struct oh_space_state *s, size_t target, uintptr_t top)
{
  struct oh_space_memory_run r;
  while (s->dirty > target) {
    if (!find_last_dirty(s, top, OH_ROUND_UP(s->dirty - target, OH_PAGE), &r)) {
      top = 0;
      break;
    }
    s->purges++;
    enum oh_space_memory_given given = oh_space_memory_give_back(r);
    top = r.base;
    if (given != OH_SPACE_MEMORY_REFUSED) s->dirty -= oh_page_clear(top, top + r.bytes, OH_PAGE_DIRTY);
    if (given == OH_SPACE_MEMORY_UNCOMMITTED) count_uncommitted(s, r);
  }
  s->dirty_end = s->dirty == 0 ? 0 : top;
}

bool oh_space_memory_hold(struct oh_space_state *s, uintptr_t top, size_t most, struct oh_space_memory_run *r)
{
  OH_ASSERT_LOCKED(&s->lock);
  if (s->dirty == 0 || !find_last_dirty(s, top, most, r)) return false;
  oh_extents_remove(&s->free, oh_extents_below(&s->free, r->base), r->base, r->bytes);
  s->dirty -= oh_page_clear(r->base, r->base + r->bytes, OH_PAGE_DIRTY);
  s->used += r->bytes;
  s->busy += r->bytes;
  s->purges++;
  return true;
}

size_t oh_space_memory_release(struct oh_space_state *s, struct oh_space_memory_run r,
                               enum oh_space_memory_given given)
{
  OH_ASSERT_LOCKED(&s->lock);
  s->used -= r.bytes;
  s->busy -= r.bytes;
  oh_extents_add(&s->free, r.base, r.bytes);
  if (given == OH_SPACE_MEMORY_UNCOMMITTED) count_uncommitted(s, r);
  if (given != OH_SPACE_MEMORY_REFUSED) return r.bytes;
  s->dirty += oh_page_set(r.base, r.base + r.bytes, OH_PAGE_DIRTY);
  if (r.base + r.bytes > s->dirty_end) s->dirty_end = r.base + r.bytes;
  return 0;
}

/* A huge page is cleared in a fraction of the time that its small pages take, with a fault for each. So memory that
   will be in huge pages again is given back sooner. */
static struct oh_settings_free const *kept(struct oh_space_state const *s)
{
  return s->granted ? &oh_settings.huge : &oh_settings.small;
}

static size_t limit_of(struct oh_space_state const *s, size_t percent)
{
  size_t bytes = s->busy / 100 * percent, least = kept(s)->keep;
  return bytes > least ? bytes : least;
}

static size_t allowance_of(struct oh_space_state const *s) { return limit_of(s, kept(s)->share); }

static size_t count_unneeded(struct oh_space_state *s)
{
  if (s->dirty < s->least) s->least = s->dirty;
  size_t allowance = allowance_of(s);
  return s->least > allowance ? s->least - allowance : 0;
}

static void end_epoch(struct oh_space_state *s, size_t taken)
{
  size_t over = count_unneeded(s);
  if ((s->taken += taken) < s->busy) return;
  if (over != 0 && !s->delayed) purge_from_top(s, s->dirty - over, s->dirty_end);
  s->least = s->dirty;
  s->taken = 0;
  s->cycles = 0;
}

size_t oh_space_memory_age(struct oh_space_state *s)
{
  OH_ASSERT_LOCKED(&s->lock);
  size_t over = count_unneeded(s), allowance = allowance_of(s);
  if (++s->cycles >= EPOCH_CYCLES_MOST) {
    if (over <= EPOCH_PURGE_MOST) end_epoch(s, s->busy);
    else { /* the rest in the next cycles */
      purge_from_top(s, s->dirty - EPOCH_PURGE_MOST, s->dirty_end);
      s->least -= EPOCH_PURGE_MOST;
    }
  }
  return allowance > s->dirty ? allowance - s->dirty : 0;
}

size_t oh_space_memory_decay(struct oh_space_state *s)
{
  OH_ASSERT_LOCKED(&s->lock);
  size_t low = s->low < s->dirty ? s->low : s->dirty, quiet = low < s->low_before ? low : s->low_before;
  size_t keep = oh_settings.small.keep < oh_settings.huge.keep ? oh_settings.small.keep : oh_settings.huge.keep;
  size_t share = s->busy / 100 * oh_settings.huge.share, allowance = share > keep ? share : keep;
  size_t over = quiet > allowance ? OH_ROUND_DOWN(quiet - allowance, OH_PAGE) : 0;
  s->low_before = low - over;
  s->low = s->dirty - over;
  return over;
}

void oh_space_memory_allocated(struct oh_space_state *s, uintptr_t base, size_t bytes)
{
  OH_ASSERT_LOCKED(&s->lock);
  s->dirty -= oh_page_clear(base, base + bytes, OH_PAGE_DIRTY);
  if (s->dirty < s->low) s->low = s->dirty;
  s->busy += oh_page_count(base, base + bytes, OH_PAGE_COMMITTED);
  oh_space_memory_unite(s, base, base + bytes, true);
  oh_space_memory_consider_huge(s);
  end_epoch(s, bytes);
}

void oh_space_memory_freed(struct oh_space_state *s, uintptr_t base, size_t bytes)
{
  OH_ASSERT_LOCKED(&s->lock);
  uintptr_t end = base + bytes;
  for (uintptr_t from = base; (from = oh_page_first(from, end, OH_PAGE_COMMITTED, true)) < end;) {
    uintptr_t to = oh_page_first(from, end, OH_PAGE_COMMITTED, false);
    s->busy -= to - from;
    s->dirty += oh_page_set(from, to, OH_PAGE_DIRTY);
    if (to > s->dirty_end) s->dirty_end = to;
    from = to;
  }
  if (s->delayed) return;
  size_t slack = kept(s)->slack, share = kept(s)->share, most = limit_of(s, slack > share ? slack : share);
  if (s->dirty > most) purge_from_top(s, most - most / 4, s->dirty_end);
}
