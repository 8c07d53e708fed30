/* SPDX-License-Identifier: MIT */
#include "limit.h"
#include "block.h"
#include "clock.h"
#include "os.h"
#include "pool.h"
#include "proc.h"
#include "settings.h"
#include "space.h"
#include "space_memory.h"

#define M ((size_t)1 << 20)
#define LOOK ((uint64_t)2000000) /* nanoseconds between two looks at what the process uses */
#define WINDOW ((uint64_t)1000000000) /* of which the share of time is taken */
#define SLICE_MOST 0.125         /* the share of a cycle that is due in one slice at most, */
#define SLICE_TIME 5000000.0     /* or what takes so many nanoseconds, if that is more */

struct oh_limit_counters oh_limit_counters;
size_t oh_limit_bytes;
double oh_limit_ahead = 1.25;

static void count(size_t *counter) { (void)oh_fetch_add_relaxed(counter, 1); }

/* --- what is used ------------------------------------------------------------------------------------------------- */

#ifdef OH_FAULTS
size_t oh_limit_peak;
void (*oh_limit_malloc)(void);
#endif
static bool trims; /* does somebody trim malloc? */

void oh_limit_forked(void)
{
  __atomic_clear(&trims, __ATOMIC_RELEASE); /* who had set it is not here */
  oh_proc_forked();
}

static size_t shared_last; /* bytes of files, and of memory that is shared, when that was read last */

/* 0: the system does not tell. It does not count pages of its pool. */
static size_t read_used(void)
{
  struct oh_proc_memory m;
  if (!oh_proc_memory(&m)) return 0;
  oh_store_relaxed(&shared_last, m.shared);
  return m.own + oh_space_memory_hugetlb();
}

/* The heap: what may be resident of it, and how much of that is free and was not given back. */
static size_t count_heap(size_t *free)
{
  struct oh_pool_counters pool;
  struct oh_block_counters block;
  struct oh_space_counters space;
  oh_pool_count(&pool);
  oh_block_count(&block);
  *free = pool.resident_free + block.resident_free;
  size_t bytes = pool.pools * OH_POOL + block.bytes + *free;
  for (int i = 0; i < OH_SPACES; i++) {
    oh_space_count(i, &space);
    *free += space.dirty;
    bytes += space.dirty;
    if (i == OH_SPACE_POOLS || i == OH_SPACE_BLOCKS) continue;
    bytes += space.used < space.committed ? space.used : space.committed;
  }
  return bytes;
}

/* Where the system does not tell, the heap's own account goes on from what it said last. What is not the heap's is
   known again whenever the process needs more memory than ever: its peak can be asked for without a file. In between
   that counts as it was. All are read relaxed: a mixture is a guess as good as either. */
static intptr_t others;  /* bytes that are not the heap's, or less than nothing: not all of that is resident */
static size_t peak_last; /* the peak at that time */

static size_t peak(void)
{
#ifdef OH_FAULTS
  if (*oh_proc_system != 0) return oh_limit_peak;
#endif
  return oh_os_peak();
}

static size_t estimate(size_t heap)
{
  size_t most = peak(), hugetlb = oh_space_memory_hugetlb(), page = oh_os_page_size();
  if (most > oh_load_relaxed(&peak_last)) {
    oh_store_relaxed(&peak_last, most);
    oh_store_relaxed(&others, (intptr_t)(most - oh_load_relaxed(&shared_last) + hugetlb - heap));
  }
  intptr_t bytes = (intptr_t)heap + oh_load_relaxed(&others);
  size_t all = bytes > (intptr_t)page ? (size_t)bytes : page;
  return most != 0 && all > most + hugetlb ? most + hugetlb : all;
}

static size_t used_with(size_t heap)
{
  static bool said;
  size_t bytes = read_used();
  if (bytes != 0) {
    oh_store_relaxed(&others, (intptr_t)(bytes - heap));
    oh_store_relaxed(&peak_last, peak());
    return bytes;
  }
  if (oh_limit_bytes != 0 && !oh_load_relaxed(&said)) {
    oh_store_relaxed(&said, true);
    oh_log("OUTHEAP: limit: the system does not tell any more how much memory the process uses; it is estimated");
  }
  return estimate(heap);
}

size_t oh_limit_used(void)
{
  size_t free;
  return used_with(count_heap(&free));
}

/* --- what malloc keeps -------------------------------------------------------------------------------------------- */

#define USELESS_MOST 10 /* times that the wait doubles */

static void trim_malloc(void)
{
#ifdef OH_FAULTS
  if (oh_limit_malloc != NULL) return oh_limit_malloc();
#endif
  oh_os_trim_malloc();
}

size_t oh_limit_trim_malloc(bool asked)
{
  static uint64_t next;
  static unsigned useless;
  if (__atomic_test_and_set(&trims, __ATOMIC_ACQUIRE)) return 0;
  uint64_t began = oh_clock_now();
  size_t given = 0;
  if (asked || began >= next) {
    size_t all = oh_limit_used();
    trim_malloc();
    size_t left = oh_limit_used();
    uint64_t now = oh_clock_now();
    given = all > left ? all - left : 0;
    useless = given >= M ? 0 : useless + (useless < USELESS_MOST);
    next = now + ((now - began) * OH_LIMIT_MALLOC << useless);
  }
  __atomic_clear(&trims, __ATOMIC_RELEASE);
  return given;
}

/* --- which limit -------------------------------------------------------------------------------------------------- */

static size_t margin; /* of a hard limit, else 0. Read relaxed */

/* Up to which memory is to be used. */
static size_t goal(void) { return oh_limit_bytes - oh_load_relaxed(&margin); }

static void find_floor(void)
{
  size_t all = oh_proc_available(), group = oh_proc_group_memory();
  if (all == SIZE_MAX) all = oh_os_physical();
  if (group < all) all = group;
  if (oh_limit_bytes != 0 && oh_limit_bytes < all) all = oh_limit_bytes;
  if (all == SIZE_MAX) {
    oh_log("OUTHEAP: ignored: memory.floor (the system does not tell how much memory there is)");
    return;
  }
  size_t share = all / 100 * oh_settings.floor_percent;
  oh_settings.floor = share < oh_settings.floor_most ? share : oh_settings.floor_most;
}

static void find_limit(struct oh_settings_limit const *s)
{
  oh_proc_keep();
  if (read_used() == 0) {
    oh_log("OUTHEAP: ignored: limit (the system does not tell how much memory the process uses)");
    return;
  }
  size_t group = s->kind == OH_SETTINGS_LIMIT_BYTES ? SIZE_MAX : oh_proc_group_memory(), all = oh_os_physical();
  if (s->kind == OH_SETTINGS_LIMIT_BYTES) oh_limit_bytes = s->bytes;
  else if (s->kind == OH_SETTINGS_LIMIT_CGROUP) oh_limit_bytes = group >= all ? 0 : group / 20 * 19;
  else {
    size_t least = group < all ? group : all;
    oh_limit_bytes = least == SIZE_MAX ? 0 : least / 100 * s->bytes;
  }
  margin = s->kind == OH_SETTINGS_LIMIT_CGROUP ? oh_limit_bytes / OH_LIMIT_MARGIN : 0;
  if (oh_limit_bytes != 0) return;
  oh_proc_release();
  oh_log("OUTHEAP: ignored: limit (no limit is set for this process's control group)");
}

void oh_limit_start(void)
{
  if (oh_settings.limit.kind != OH_SETTINGS_LIMIT_NONE) find_limit(&oh_settings.limit);
  if (oh_settings.floor_percent != 0) find_floor();
}

void oh_limit_refuse(void)
{
  if (oh_limit_bytes != 0) oh_log("OUTHEAP: limit is not available for this version of OCaml");
  if (oh_settings.floor != 0) oh_log("OUTHEAP: memory.floor is not available for this version of OCaml");
  oh_limit_bytes = oh_settings.floor = 0;
  oh_proc_release();
}

/* --- how much room there is --------------------------------------------------------------------------------------- */

/* At the last look. A look is made by who changes `looked`; all are read relaxed: a mixture of two looks is a guess as
   good as either. */
static uint64_t looked;
static size_t used, unused; /* bytes: as oh_limit_used; of these, freed and not given back */
static size_t before;       /* `used` of the look before */
static size_t since;        /* bytes that were allocated since then */
static size_t grown;        /* bytes that all have grown by, ever: the heap, and what is not the heap's */
static size_t taken;        /* bytes that `used` has grown by, ever, without what it has shrunk by */
static uint64_t cycle, last_cycle; /* nanoseconds spent in slices, of this cycle and of the last */

/* Of each slot: the free memory of its pools, as it counts in `free_in_pools`; what it spent in slices since `began`.
   `seen`, `seen_taken`: `grown`, `taken` at its last slice: for what all allocate, every domain has a share of its own
   heap to do. `turn` is that of the last cycle, after which free_in_pools is known exactly. It may be less than nothing
   for a moment: what a domain has allocated between that and its next slice is not known. */
static struct slot {
  intptr_t free;
  size_t seen, seen_taken;
  unsigned turn;
  uint64_t began, spent;
} slots[OH_LIMIT_SLOTS], everyone; /* the last: whole cycles, in which all are stopped */
static intptr_t free_in_pools;
static unsigned turn;

static void look(void)
{
  size_t free, heap = count_heap(&free);
  oh_store_relaxed(&unused, free);
  oh_store_relaxed(&used, used_with(heap));
}

/* What is used and not to be had again. */
static size_t needed(void)
{
  intptr_t in_pools = oh_load_relaxed(&free_in_pools);
  size_t all = oh_load_relaxed(&used), again = oh_load_relaxed(&unused) + (in_pools > 0 ? (size_t)in_pools : 0);
  return all > again ? all - again : 0;
}

static void account(struct slot *s, intptr_t free)
{
  unsigned now = oh_load_relaxed(&turn);
  if (s->turn == now) (void)oh_fetch_add_relaxed(&free_in_pools, free - s->free);
  s->turn = now;
  s->free = free;
}

/* --- what is due -------------------------------------------------------------------------------------------------- */

/* Will what was kept free of a hard limit be in use when so much more is allocated? */
static bool is_urgent(size_t bytes) { return oh_load_relaxed(&margin) != 0 && oh_load_relaxed(&used) + bytes > goal(); }

/* It becomes as large as it was too small, and by and by smaller again. */
static void widen_margin(size_t now_used)
{
  size_t over = now_used > goal() ? now_used - goal() : 0, most = oh_limit_bytes / OH_LIMIT_MARGIN_MOST;
  if (over > oh_load_relaxed(&margin)) oh_store_relaxed(&margin, over < most ? over : most);
}

static void narrow_margin(void)
{
  size_t least = oh_limit_bytes / OH_LIMIT_MARGIN, now = oh_load_relaxed(&margin);
  if (now > least) oh_store_relaxed(&margin, now - (now - least) / 16);
}

/* More than one thread may do this for `everyone`: a mixture is a guess as good as either. */
static bool may_spend(struct slot *s, uint64_t now, size_t bytes)
{
  uint64_t elapsed = now - oh_load_relaxed(&s->began), spent = oh_load_relaxed(&s->spent);
  if (elapsed > WINDOW) { /* a moment long ago counts for half */
    oh_store_relaxed(&s->began, now - WINDOW / 2);
    spent = spent * (WINDOW / 2 >> 10) / (elapsed >> 10);
    oh_store_relaxed(&s->spent, spent);
    elapsed = WINDOW / 2;
  }
  uint64_t most = is_urgent(bytes) ? elapsed * OH_LIMIT_SHARE_HARD : elapsed / OH_LIMIT_SHARE;
  return elapsed < LOOK || spent <= most;
}

/* Of what was counted since the slot has seen it, to the room that is left when `need` is not. */
static double share_of(size_t const *counter, size_t *seen, size_t need)
{
  size_t limit = goal(), least = limit / 256, now = oh_load_relaxed(counter), more = now - *seen;
  *seen = now;
  return (double)more * oh_limit_ahead / (double)(need + least < limit ? limit - need : least);
}

double oh_limit_due(unsigned slot, size_t allocated, size_t free, uint64_t now)
{
  struct slot *s = &slots[slot % OH_LIMIT_SLOTS];
  uint64_t past = oh_load_relaxed(&looked);
  if (s->began == 0) { /* a new domain: what was allocated before is not its share */
    s->seen = oh_load_relaxed(&grown);
    s->seen_taken = oh_load_relaxed(&taken);
    s->spent = 0;
    s->began = now;
  }
  account(s, (intptr_t)free);
  (void)oh_fetch_add_relaxed(&since, allocated);
  (void)oh_fetch_add_relaxed(&grown, allocated);
  if (now - past >= LOOK && oh_cas_seq_cst(&looked, &past, now)) {
    look();
    /* Memory that is not the collector's has grown, too. */
    size_t now_used = oh_load_relaxed(&used), heap = oh_load_relaxed(&since), last = oh_load_relaxed(&before);
    size_t growth = now_used > last ? now_used - last : 0;
    (void)oh_fetch_add_relaxed(&taken, growth);
    if (growth > heap) (void)oh_fetch_add_relaxed(&grown, growth - heap);
    if (oh_load_relaxed(&margin) != 0) widen_margin(now_used);
    oh_store_relaxed(&before, now_used);
    oh_store_relaxed(&since, (size_t)0);
  }
  /* What is allocated has what is free as well. Where that is of no use, having other sizes, the process grows. */
  size_t all = oh_load_relaxed(&used), again = oh_load_relaxed(&unused), resident = all > again ? all - again : 0;
  double share = share_of(&grown, &s->seen, needed()), by_growth = share_of(&taken, &s->seen_taken, resident);
  if (by_growth > share) share = by_growth;
  if (resident < goal() / OH_LIMIT_FROM || share == 0) return 0;
  if (!may_spend(s, now, 0)) return count(&oh_limit_counters.held), 0;
  count(&oh_limit_counters.hurried);
  double cost = (double)oh_load_relaxed(&last_cycle), most = cost < SLICE_TIME ? 1 : SLICE_TIME / cost;
  if (oh_load_relaxed(&margin) != 0) most = 1;
  else if (most < SLICE_MOST || cost == 0) most = SLICE_MOST;
  return share < most ? share : most;
}

void oh_limit_leave(unsigned slot) { slots[slot % OH_LIMIT_SLOTS].began = 0; }

bool oh_limit_exceeds(unsigned slot, size_t bytes, uint64_t now)
{
  size_t most = goal();
  look();
  if (oh_load_relaxed(&used) + bytes <= most) return false;
  (void)oh_pool_trim(1);
  (void)oh_block_trim();
  look();
  if (oh_load_relaxed(&used) + bytes <= most) return false;
  if (may_spend(&slots[slot % OH_LIMIT_SLOTS], now, bytes) && may_spend(&everyone, now, bytes)) return true;
  return count(&oh_limit_counters.held), false;
}

void oh_limit_slice(unsigned slot, uint64_t now, uint64_t nanoseconds)
{
  struct slot *s = &slots[slot % OH_LIMIT_SLOTS];
  if (s->began == 0) s->began = now;
  s->spent += nanoseconds;
  (void)oh_fetch_add_relaxed(&cycle, nanoseconds);
}

void oh_limit_stopped(unsigned slot, uint64_t now, uint64_t nanoseconds)
{
  oh_limit_slice(slot, now, nanoseconds);
  (void)oh_fetch_add_relaxed(&everyone.spent, nanoseconds);
}

bool oh_limit_is_passed(void) { return oh_load_relaxed(&used) > goal(); }

/* --- the end of a cycle ------------------------------------------------------------------------------------------- */

static uint64_t compacted, took;

static void know_free(size_t free)
{
  oh_store_relaxed(&free_in_pools, (intptr_t)free);
  oh_store_relaxed(&turn, turn + 1);
}

bool oh_limit_cycle(size_t live, size_t free, uint64_t now)
{
  know_free(free);
  oh_store_relaxed(&last_cycle, oh_load_relaxed(&cycle));
  oh_store_relaxed(&cycle, (uint64_t)0);
  look();
  if (oh_load_relaxed(&margin) != 0) narrow_margin();
  size_t all = oh_load_relaxed(&used);
  if (all > oh_limit_bytes) count(&oh_limit_counters.exceeded);
  if (all < goal() / 10 * 9) return false;
  if (free < 4 * M || free < live / 16) return false;
  if (compacted != 0 && now - compacted < took * OH_LIMIT_SHARE) return false;
  return true;
}

/* What was free in pools before is given back, or free in large pages. */
void oh_limit_moved(size_t free)
{
  know_free(free);
  look();
}

void oh_limit_compacted(uint64_t now, uint64_t nanoseconds)
{
  count(&oh_limit_counters.compacted);
  compacted = now;
  took = nanoseconds;
}

bool oh_limit_wants_memory(void)
{
  static bool said;
  size_t limit = oh_limit_bytes, all = oh_load_relaxed(&used);
  if (all > goal() / 10 * 9) {
    (void)oh_limit_trim_malloc(false);
    look();
    all = oh_load_relaxed(&used);
  }
  size_t need = needed();
  if (!said && need > limit) {
    said = true;
    oh_log("OUTHEAP: %zu MB are in use, more than limit=%zuM; the program goes on", need / M, limit / M);
  }
  return all > goal() / 50 * 49 && oh_load_relaxed(&unused) >= M;
}
