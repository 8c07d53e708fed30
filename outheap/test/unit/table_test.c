/* SPDX-License-Identifier: MIT */
/* The table: transitions of its entries, any 64-bit pattern, tainting beside reservations, the report. */
#include "table.h"
#include "base.h"
#include "os.h"
#include "outheap.h"
#include "ranges.h"
#include "address_space.h"
#include "settings.h"
#include "space.h"
#include "start.h"
#include "pointer.h"
#include "try.h"
#include <sched.h>

/* To go through the whole table takes its time. */
#define LARGE (OH_TABLE_ENTRIES > (size_t)1 << 20)

/* Chunks where nothing of ours is placed. */
#define FAR(i) (((uintptr_t)OH_TABLE_ENTRIES / 8 * 7 + (uintptr_t)(i)) << OH_CHUNK_LOG)

static bool may_become(enum oh_kind from, enum oh_kind to)
{
  bool from_foreign = from == OH_KIND_FOREIGN || from == OH_KIND_MIXED || from == OH_KIND_REPORTED,
       to_foreign = to == OH_KIND_FOREIGN || to == OH_KIND_MIXED || to == OH_KIND_REPORTED;
  return from == to || from == OH_KIND_UNKNOWN || (from_foreign && to_foreign);
}

/* Every operation in every state. */
static void transitions(void)
{
  static enum oh_kind const kinds[] = { OH_KIND_MAJOR, OH_KIND_YOUNG, OH_KIND_VALUES, OH_KIND_FOREIGN };
  uint64_t random = try_seed;
  bool asking = false;
  for (int step = 0; step < 20000; step++) {
    uintptr_t i = try_below(&random, 40), chunk = FAR(i), inside = chunk + 8 * try_below(&random, OH_CHUNK / 8);
    enum oh_kind before = oh_table_kind(inside), after;
    bool heap = before == OH_KIND_MAJOR || before == OH_KIND_YOUNG || before == OH_KIND_VALUES;
    switch (try_below(&random, 5)) {
      case 0: {
        enum oh_kind k = kinds[try_below(&random, 4)];
        if (k != OH_KIND_FOREIGN && try_below(&random, 4)) break;
        bool done = oh_table_claim(chunk, k);
        EXPECT(done == (before == OH_KIND_UNKNOWN || before == k || (k == OH_KIND_FOREIGN && !heap)),
               "claim %d -> %d: %d", before, k, done);
        EXPECT(oh_table_kind(inside) == (before == OH_KIND_UNKNOWN ? k : before), "claim");
        break;
      }
      case 1: {
        bool done = oh_table_set_mixed(inside, inside + 8);
        EXPECT(done == !heap && oh_table_kind(inside) == (heap     ? before
                                                          : asking ? OH_KIND_REPORTED
                                                                   : OH_KIND_MIXED),
               "mix %d -> %d", before, oh_table_kind(inside));
        break;
      }
      case 2:
        EXPECT(oh_pointer_is_markable_slow(inside, OH_REGION_BY_ROOT) == (before == OH_KIND_MAJOR), "met");
        after = OH_TAINT && before == OH_KIND_UNKNOWN ? asking ? OH_KIND_REPORTED : OH_KIND_FOREIGN : before;
        EXPECT(oh_table_kind(inside) == after, "met %d -> %d", before, oh_table_kind(inside));
        break;
      case 3:
        EXPECT(oh_pointer_is_markable(inside) == (before == OH_KIND_MAJOR), "marks");
        EXPECT(oh_pointer_is_value(inside) == heap, "value");
        break;
      case 4:
        if (try_below(&random, LARGE ? 1000 : TRY_SANITIZED ? 100 : 20)) break;
        asking = !asking;
        outheap_report(asking, NULL, NULL);
        after = oh_table_kind(inside);
        EXPECT(asking ? after != OH_KIND_MIXED && after != OH_KIND_FOREIGN : after != OH_KIND_REPORTED, "ask");
        break;
    }
    EXPECT(may_become(before, oh_table_kind(inside)), "%d -> %d", before, oh_table_kind(inside));
  }
  outheap_report(0, NULL, NULL);
  EXPECT(oh_table_set_mixed(FAR(50), FAR(52) + 8) && oh_table_kind(FAR(52)) == OH_KIND_MIXED &&
           oh_table_kind(FAR(53)) == OH_KIND_UNKNOWN,
         "several chunks");
  /* left over from a report */
  __atomic_store_n(&oh_table[FAR(53) >> OH_CHUNK_LOG], OH_KIND_REPORTED, __ATOMIC_RELAXED);
  EXPECT(!oh_pointer_is_markable_slow(FAR(53), OH_REGION_BY_ROOT) && oh_table_kind(FAR(53)) == OH_KIND_MIXED,
         "not healed");
  EXPECT(oh_table_claim(FAR(55), OH_KIND_MAJOR) && !oh_table_set_mixed(FAR(54), FAR(56)) &&
           oh_table_kind(FAR(54)) == OH_KIND_UNKNOWN,
         "all or nothing");
}

static void patterns(void)
{
  uint64_t random = try_seed;
  char *major = outheap_allocate(OUTHEAP_MAJOR, OH_PAGE), *values = outheap_allocate(OUTHEAP_VALUES, OH_PAGE);
  for (int step = 0; step < 300000; step++) {
    uintptr_t a = try_random(&random) >> try_below(&random, 64);
    switch (try_below(&random, 8)) {
      case 0: a = UINTPTR_MAX - (uintptr_t)((uint64_t)a >> 40); break;
      case 1: a = OH_ADDRESS_LIMIT + (a >> 20) - (a >> 21); break;
      case 2: a = (uintptr_t)major + (a & (2 * OH_CHUNK - 1)); break;
      case 3: a |= ~(UINTPTR_MAX >> 1); break;
      /* looks like a pointer when its high bits are cut off */
      case 4: a = (uintptr_t)((uintptr_t)major | (uint64_t)a << OH_ADDRESS_BITS); break;
    }
    enum oh_kind k = a >> OH_CHUNK_LOG < OH_TABLE_ENTRIES ? (enum oh_kind)oh_table[a >> OH_CHUNK_LOG] : OH_KIND_FOREIGN;
    enum outheap_kind c = outheap_classify((void *)a);
    EXPECT(k == oh_table_kind(a), "%zx", (size_t)a);
    switch (k) {
      case OH_KIND_UNKNOWN: EXPECT(c == OUTHEAP_UNKNOWN, "%zx", (size_t)a); break;
      case OH_KIND_MAJOR: EXPECT(c == OUTHEAP_MAJOR, "%zx", (size_t)a); break;
      case OH_KIND_YOUNG: EXPECT(c == OUTHEAP_YOUNG, "%zx", (size_t)a); break;
      case OH_KIND_VALUES: EXPECT(c == OUTHEAP_VALUES, "%zx", (size_t)a); break;
      default: EXPECT(c == OUTHEAP_FOREIGN, "%zx", (size_t)a);
    }
    /* A random pattern in the middle of nowhere is not tried, or the whole address space would be tainted. */
    if (k != OH_KIND_UNKNOWN)
      EXPECT(oh_pointer_is_markable(a) == (k == OH_KIND_MAJOR) &&
               oh_pointer_is_value(a) == (k == OH_KIND_MAJOR || k == OH_KIND_YOUNG || k == OH_KIND_VALUES),
             "%zx", (size_t)a);
  }
  EXPECT(outheap_classify(NULL) == OUTHEAP_UNKNOWN && !oh_pointer_is_markable(0) &&
           outheap_classify(NULL) == (OH_TAINT ? OUTHEAP_FOREIGN : OUTHEAP_UNKNOWN),
         "NULL");
  outheap_free(OUTHEAP_MAJOR, major, OH_PAGE);
  outheap_free(OUTHEAP_VALUES, values, OH_PAGE);
}

/* A pointer to where the heap would grow next: the heap goes elsewhere. */
static void tainted(void)
{
#if OH_TAINT
  uint64_t random = try_seed;
  for (int round = 0; round < 30; round++) {
    char *first = oh_space_alloc(OH_SPACE_POOLS, OH_PAGE, true, NULL);
    uintptr_t next = OH_ROUND_UP(oh_reserve_end(OH_SPACE_POOLS), OH_CHUNK) + try_below(&random, 3) * OH_CHUNK;
    if (round % 2 == 1) /* what lies behind the reserve may all be in use */
      while (next >> OH_CHUNK_LOG < OH_TABLE_ENTRIES - 1 && oh_table_kind(next) != OH_KIND_UNKNOWN) next += OH_CHUNK;
    bool known = oh_table_kind(next) != OH_KIND_UNKNOWN;
    EXPECT(known || (!oh_pointer_is_markable(next + 8) && oh_table_kind(next) == OH_KIND_FOREIGN), "taint");
    size_t bytes = (1 + try_below(&random, 3)) * OH_CHUNK;
    char *run = oh_space_alloc(OH_SPACE_POOLS, bytes, false, NULL);
    EXPECT(run != NULL, "no memory");
    for (char *p = run; p < run + bytes; p += OH_PAGE)
      EXPECT(oh_table_kind((uintptr_t)p) == OH_KIND_MAJOR, "a tainted chunk in use");
    EXPECT(known || !oh_pointer_is_markable(next + 8), "it became heap");
    if (round % 3 == 0) oh_space_free(OH_SPACE_POOLS, run, bytes);
    oh_space_free(OH_SPACE_POOLS, first, OH_PAGE);
  }
  struct outheap_statistics s;
  outheap_statistics(&s);
  EXPECT(s.met_unknown != 0, "%zu", s.met_unknown);
  oh_space_validate();

  /* Ahead: the stock is passed over where it is tainted. */
  struct oh_reserve_counters c;
  EXPECT(outheap_reserve(8 * OH_CHUNK) == 0, "reserve");
  char *b = oh_space_alloc(OH_SPACE_BLOCKS, OH_PAGE, false, NULL); /* blocks may have had room */
  oh_reserve_count(OH_SPACES, &c);
  for (int k = 0; k < 3; k++) EXPECT(oh_space_alloc(OH_SPACE_BLOCKS, 2 * OH_CHUNK, false, NULL) != NULL, "blocks");
  EXPECT(b != NULL, "blocks");
  oh_space_validate();
#endif
}

/* Tainted after it was reserved, before it is claimed. */
#if OH_TAINT
static uint64_t hook_random;
static uintptr_t hit[3000];
static size_t hits;
static void taint_some(uintptr_t base, size_t bytes)
{
  for (uintptr_t c = OH_ROUND_UP(base, OH_CHUNK); c < base + bytes; c += OH_CHUNK)
    if (try_below(&hook_random, 3) == 0 && hits < sizeof hit / sizeof *hit && oh_table_kind(c) == OH_KIND_UNKNOWN &&
        !oh_pointer_is_markable(c + 24))
      hit[hits++] = c;
}
static void between(void)
{
  struct outheap_statistics s;
  hook_random = try_seed;
  oh_os_reserved = taint_some;
  for (int i = 0; i < 200; i++) {
    enum oh_space_id id = (enum oh_space_id)try_below(&hook_random, OH_SPACES);
    size_t bytes = (1 + try_below(&hook_random, 2)) * OH_CHUNK;
    char *p = oh_space_alloc(id, bytes, false, NULL);
    EXPECT(p != NULL, "no address space");
    for (size_t k = 0; k < bytes && id != OH_SPACE_FOREIGN; k += OH_PAGE)
      EXPECT(oh_table_kind((uintptr_t)p + k) != OH_KIND_FOREIGN, "tainted");
    if (i % 50 == 0) EXPECT(outheap_reserve(5 * OH_CHUNK) == 0, "reserve");
  }
  oh_os_reserved = NULL;
  outheap_statistics(&s);
  EXPECT(hits > 20 && s.chunks_tainted != 0, "%zu hits, %zu tainted", hits, s.chunks_tainted);
  for (size_t i = 0; i < hits; i++) EXPECT(oh_table_kind(hit[i]) == OH_KIND_FOREIGN, "%zx became heap", (size_t)hit[i]);
  oh_space_validate();
}

/* A claim and a taint at once: one of them. */
static unsigned turn[2];
static void *one_of_two(void *arg)
{
  size_t me = (uintptr_t)arg;
  static bool result[2];
  for (unsigned i = 1; i < (TRY_SANITIZED ? 3000 : 50000); i++) {
    __atomic_store_n(&turn[me], 3 * i, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&turn[!me], __ATOMIC_SEQ_CST) < 3 * i) {}
    result[me] = me == 0 ? oh_table_claim(FAR(200), OH_KIND_MAJOR) : oh_pointer_is_markable(FAR(200));
    __atomic_store_n(&turn[me], 3 * i + 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&turn[!me], __ATOMIC_SEQ_CST) < 3 * i + 1) {}
    EXPECT(result[0] == result[1] && oh_table_kind(FAR(200)) == (result[0] ? OH_KIND_MAJOR : OH_KIND_FOREIGN),
           "claimed %d, marked %d", result[0], result[1]);
    __atomic_store_n(&turn[me], 3 * i + 2, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&turn[!me], __ATOMIC_SEQ_CST) < 3 * i + 2) {}
    if (me == 0) __atomic_store_n(&oh_table[FAR(200) >> OH_CHUNK_LOG], 0, __ATOMIC_SEQ_CST);
  }
  return NULL;
}
static void at_once(void)
{
  oh_start();
  EXPECT(oh_table_kind(FAR(200)) == OH_KIND_UNKNOWN, "in use");
  try_threads(2, one_of_two);
}
#endif

/* Threads reserve; others meet pointers to the very places. Who was told that it is foreign must be right forever. */
#if OH_TAINT
static bool stop;
#define SEEN 4096
static uintptr_t seen[2][SEEN];
static size_t seens[2];

static void *marker(void *arg)
{
  size_t me = (uintptr_t)arg;
  uint64_t random = try_seed + me;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED) && seens[me] < SEEN) {
    uintptr_t a = OH_ROUND_UP(oh_reserve_end((enum oh_space_id)try_below(&random, OH_SPACES)), OH_CHUNK) +
                  try_below(&random, 3) * OH_CHUNK;
    if (a == 0 || try_below(&random, 50)) continue;
    if (!oh_pointer_is_markable(a + 8)) seen[me][seens[me]++] = a;
    else EXPECT(oh_table_kind(a) == OH_KIND_MAJOR, "marks");
  }
  return NULL;
}

static void *grower(void *arg)
{
  uint64_t random = try_seed + (uintptr_t)arg + 9;
  for (int i = 0; i < 120; i++) {
    enum oh_space_id id = (enum oh_space_id)try_below(&random, OH_SPACES);
    size_t bytes = (1 + try_below(&random, 3)) * OH_CHUNK;
    char *p = oh_space_alloc(id, bytes, false, NULL);
    EXPECT(p != NULL, "no address space: %d", errno);
    for (size_t k = 0; k < bytes; k += OH_PAGE) {
      enum oh_kind e = oh_table_kind((uintptr_t)p + k);
      EXPECT(id == OH_SPACE_FOREIGN  ? e == OH_KIND_FOREIGN || e == OH_KIND_MIXED
             : id == OH_SPACE_VALUES ? e == OH_KIND_VALUES
             : id == OH_SPACE_YOUNG  ? e == OH_KIND_YOUNG
                                     : e == OH_KIND_MAJOR,
             "kind %d", e);
    }
    if (try_below(&random, 4) == 0) oh_space_free(id, p, bytes);
  }
  return NULL;
}

static void *race_player(void *arg)
{
  uintptr_t i = (uintptr_t)arg;
  if (i < 2) return marker(arg);
  grower(arg);
  if (i == 2) __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  return NULL;
}

static void race(void)
{
  try_threads(4, race_player);
  for (int m = 0; m < 2; m++)
    for (size_t i = 0; i < seens[m]; i++)
      EXPECT(oh_table_kind(seen[m][i]) != OH_KIND_MAJOR, "%zx became heap", (size_t)seen[m][i]);
  printf("    %zu pointers met\n", seens[0] + seens[1]);
  oh_space_validate();
}

static size_t sampled;
static uintptr_t last;
static void sample(void const *pointer, void const *data)
{
  __atomic_fetch_add(&sampled, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&last, (uintptr_t)pointer, __ATOMIC_RELAXED);
  EXPECT(data == &sampled, "data");
}

static void reports(void)
{
  uintptr_t wild = (uintptr_t)((uint64_t)0xdead << 48), far = FAR(60);
  char *m = outheap_allocate(OUTHEAP_FOREIGN, OH_PAGE), *heap = outheap_allocate(OUTHEAP_MAJOR, OH_PAGE);
  EXPECT(outheap_declare_values(m, m + 800) == 0, "declare");
  EXPECT(!oh_pointer_is_markable(far) && oh_table_kind(far) == OH_KIND_FOREIGN, "tainted before");
  outheap_report(3, sample, &sampled);
  EXPECT(oh_table_kind(far) == OH_KIND_REPORTED && oh_pointer_is_value((uintptr_t)m + 8) &&
           outheap_classify(m) == OUTHEAP_VALUES,
         "ask");
  for (int i = 0; i < 10; i++)
    EXPECT(!oh_pointer_is_markable(far + 16) && !oh_pointer_is_markable(wild) &&
             !oh_pointer_is_markable((uintptr_t)m + 8) && oh_pointer_is_markable((uintptr_t)heap),
           "marks");
  /* values and the heap are not counted */
  EXPECT(sampled == 6 && (last == wild || last == far + 16), "%zu samples", sampled);
  EXPECT(!oh_pointer_is_markable(FAR(61)) && oh_table_kind(FAR(61)) == OH_KIND_REPORTED, "still tainted");
  EXPECT(outheap_report(0, NULL, NULL) == 21, "count");
  EXPECT(oh_table_kind(far) == OH_KIND_MIXED && oh_table_kind(FAR(61)) == OH_KIND_MIXED &&
           !oh_pointer_is_markable(far + 16) && sampled == 7,
         "%zu samples", sampled);
  EXPECT(oh_pointer_is_value((uintptr_t)m + 8), "value");
  EXPECT(outheap_withdraw_values(m, m + 800) == 0, "withdraw");
  outheap_free(OUTHEAP_FOREIGN, m, OH_PAGE);
  outheap_free(OUTHEAP_MAJOR, heap, OH_PAGE);
}

/* A thread in which no sampler may run passes on what it finds; it counts where it is asked about again. */
static uintptr_t deferred;
static void defer(uintptr_t address) { deferred = address; }
static void deferred_reports(void)
{
  uintptr_t far = FAR(60);
  size_t before = sampled;
  outheap_report(1, sample, &sampled);
  oh_report_defer = defer;
  EXPECT(!oh_pointer_is_markable(far + 16) && deferred == far + 16, "%zx", deferred);
  EXPECT(sampled == before && oh_report_count() == 0, "%zu samples", sampled);
  oh_report_defer = NULL;
  EXPECT(!oh_pointer_is_markable(deferred) && sampled == before + 1 && outheap_report(0, NULL, NULL) == 1, "later");
}

/* The sampler's data are the caller's again when the report has ended. */
static void touch(void const *pointer, void const *data)
{
  (void)pointer;
  sched_yield();
  EXPECT(**(int *const *)data == 5, "data");
}
static void *report_player(void *arg)
{
  uint64_t random = try_seed + (uintptr_t)arg;
  for (int i = 0; i < (LARGE ? 4 : TRY_SANITIZED ? 60 : 400); i++) {
    if ((uintptr_t)arg == 0) {
      int *data = malloc(sizeof *data), **holder = malloc(sizeof *holder);
      *data = 5, *holder = data;
      outheap_report(1 + try_below(&random, 2), touch, holder);
      for (int k = 0; k < 20; k++) sched_yield();
      outheap_report(0, NULL, NULL);
      free(data), free(holder);
    } else
      for (int k = 0; k < 200; k++) {
        oh_pointer_is_markable(FAR(62 + try_below(&random, 50)));
        if (k % 50 == 0) oh_table_set_mixed(FAR(112 + try_below(&random, 50)), FAR(163));
      }
  }
  return NULL;
}
static void report_threads(void) { try_threads(4, report_player); }
#endif

int main(int argc, char **argv)
{
  try_start(argc, argv);
  setenv("OUTHEAP", "thp=off", 1);
  oh_start();
  TRY(transitions);
  TRY(patterns);
  TRY(tainted);
#if OH_TAINT
  TRY(reports);
  TRY(deferred_reports);
  TRY(report_threads);
  TRY(at_once);
  TRY(between);
  TRY(race);
#endif
  return try_end();
}
