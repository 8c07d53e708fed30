/* SPDX-License-Identifier: MIT */
/* Pools: random operations against a model, threads, failures, what stays resident. */
#define _GNU_SOURCE
#include "base.h"
#include "pool.h"
#include "os.h"
#include "settings.h"
#include "start.h"
#include "try.h"

#define PIECES OH_POOLS_PER_PAGE
#define MOST ((size_t)2048)

static char *live[MOST];
static size_t lives;

static void fill(char *pool, uint64_t mark)
{
  for (size_t i = 0; i < OH_POOL; i += 2040) memcpy(pool + i, &mark, 8);
}
static void verify(char *pool, uint64_t mark)
{
  for (size_t i = 0; i < OH_POOL; i += 2040) EXPECT(memcmp(pool + i, &mark, 8) == 0, "pool %p at %zu", (void *)pool, i);
}

static char *page_of(char const *pool) { return (char *)((uintptr_t)pool & ~(OH_PAGE - 1)); }
static size_t number_of(char const *pool) { return (size_t)(pool - page_of(pool)) >> OH_POOL_LOG; }

/* The model: pools in use of the page of this pool, as a set. */
static uint64_t used_beside(char const *pool)
{
  uint64_t set = 0;
  for (size_t i = 0; i < lives; i++)
    if (page_of(live[i]) == page_of(pool)) set |= (uint64_t)1 << number_of(live[i]);
  return set;
}

static void take_one(void)
{
  size_t fullest = 0;
  /* pages that are not full: the largest number of pools in use */
  for (size_t i = 0; i < lives; i++) {
    size_t n = oh_pool_page_used(live[i]);
    if (n < PIECES && n > fullest) fullest = n;
  }
  char *p = oh_pool_alloc();
  EXPECT(p != NULL && ((uintptr_t)p & (OH_POOL - 1)) == 0, "%p", (void *)p);
  for (size_t i = 0; i < lives; i++) EXPECT(live[i] != p, "twice %p", (void *)p);
  uint64_t before = used_beside(p);
  EXPECT((size_t)__builtin_popcountll(before) == fullest, "page with %d, fullest %zu", __builtin_popcountll(before),
         fullest);
  uint64_t free = ~before & (~(uint64_t)0 >> (64 - PIECES));
  int first = oh_pool_rising ? __builtin_ctzll(free) : 63 - __builtin_clzll(free);
  EXPECT((size_t)first == number_of(p), "not the %s", oh_pool_rising ? "lowest" : "highest");
  fill(p, (uintptr_t)p);
  live[lives++] = p;
}

static void give_one(size_t i)
{
  char *p = live[i];
  verify(p, (uintptr_t)p);
  EXPECT(oh_pool_page_used(p) == (unsigned)__builtin_popcountll(used_beside(p)), "page count");
  fill(p, 0x5555);
  oh_pool_free(p);
  live[i] = live[--lives];
}

static void give_all(void)
{
  while (lives > 0) give_one(lives - 1);
  struct oh_pool_counters c;
  oh_pool_count(&c);
  EXPECT(c.pools == 0 && c.pages == 0 && c.resident_free == 0, "%zu %zu %zu", c.pools, c.pages, c.resident_free);
  oh_pool_validate();
}

static void model(void)
{
  uint64_t state = try_seed;
  size_t most = MOST / 4;
  for (int round = 0; round < 6000; round++) {
    if (round % 500 == 0) most = 1 + try_below(&state, MOST / 2);
    if (lives == 0 || (lives < most && try_below(&state, 2) != 0)) take_one();
    else give_one(try_below(&state, lives));
    if (round % 64 == 0) oh_pool_validate();
    if (round % 512 == 511) {
      oh_pool_trim((int)try_below(&state, 2));
      for (size_t i = 0; i < lives; i++) verify(live[i], (uintptr_t)live[i]);
    }
    struct oh_pool_counters c;
    if (round % 16 == 0) {
      oh_pool_count(&c);
      EXPECT(c.pools == lives && c.pages >= (lives + PIECES - 1) / PIECES && c.pages <= lives,
             "%zu pools, %zu pages, %zu", c.pools, c.pages, lives);
      EXPECT(c.resident_free <= (c.pages * PIECES - c.pools) << OH_POOL_LOG, "%zu", c.resident_free);
    }
  }
  give_all();
}

static void rising(void)
{
  oh_pool_rising = true;
  model();
  oh_pool_rising = false;
}

static void *exchanged[256];

static void *churn(void *number)
{
  uint64_t state = try_seed + (uintptr_t)number;
  for (int i = 0; i < 20000; i++) {
    void **place = &exchanged[try_below(&state, 256)];
    char *p = NULL;
    if (try_below(&state, 2) != 0) {
      p = oh_pool_alloc();
      EXPECT(p != NULL, "no memory");
      fill(p, (uintptr_t)p);
    }
    p = __atomic_exchange_n(place, p, __ATOMIC_ACQ_REL);
    if (p != NULL) {
      verify(p, (uintptr_t)p);
      unsigned n = oh_pool_page_used(p);
      EXPECT(n >= 1 && n <= PIECES, "%u", n);
      oh_pool_free(p);
    }
    if (i % 4096 == 0) oh_pool_trim(i / 4096 & 1);
    if (i % 1024 == 0) oh_pool_validate();
  }
  return NULL;
}

static void threads(void)
{
  try_threads(4, churn);
  for (int i = 0; i < 256; i++)
    if (exchanged[i] != NULL) {
      oh_pool_free(exchanged[i]);
      exchanged[i] = NULL;
    }
  give_all();
}

static size_t resident_of(char **pools, size_t n)
{
  size_t sum = 0;
  for (size_t i = 0; i < n; i++) sum += try_resident(pools[i], OH_POOL);
  return sum;
}

static void trim(void)
{
  static char *pools[MOST];
  size_t n = 8 * PIECES < MOST ? 8 * PIECES : MOST, kept = 0;
  for (size_t i = 0; i < n; i++) {
    EXPECT((pools[i] = oh_pool_alloc()) != NULL, "no memory");
    memset(pools[i], 1, OH_POOL);
  }
  /* Every 4th stays. */
  for (size_t i = 0; i < n; i++)
    if (i % 4 != 0) oh_pool_free(pools[i]);
    else kept++;
  oh_pool_trim(0);
  struct oh_pool_counters c;
  oh_pool_count(&c);
  EXPECT(c.pools == kept, "%zu", c.pools);
  size_t before = resident_of(pools, n);
  size_t given = oh_pool_trim(1);
  oh_pool_count(&c);
  size_t after = resident_of(pools, n);
  EXPECT(c.resident_free == 0, "%zu", c.resident_free);
  if (OH_POOL >= oh_os_page_size()) {
    EXPECT(given >= (n - kept) * OH_POOL, "%zu", given);
    if (!TRY_SANITIZED)
      EXPECT(before >= n * OH_POOL && after == kept * OH_POOL, "%zu, then %zu of %zu", before, after, n * OH_POOL);
  }
  oh_pool_validate();
  for (size_t i = 0; i < n; i += 4) oh_pool_free(pools[i]);
  oh_pool_trim(1);
  EXPECT(TRY_SANITIZED || resident_of(pools, n) == 0, "%zu", resident_of(pools, n));
  give_all();
}

/* A huge page that is nearly full stays whole. */
#define FEW (PIECES / 16)
static void nearly_full(void)
{
  static char *pools[PIECES];
  enum oh_settings_thp saved = oh_settings.thp[OH_SPACE_POOLS];
  struct oh_pool_counters c;
  if (FEW == 0) return;
  for (size_t i = 0; i < PIECES; i++) memset(pools[i] = oh_pool_alloc(), 1, OH_POOL);
  for (size_t i = 0; i < FEW; i++) oh_pool_free(pools[i]);
  oh_settings.thp[OH_SPACE_POOLS] = OH_SETTINGS_THP_ALWAYS;
  oh_pool_trim(1);
  oh_pool_count(&c);
  EXPECT(c.resident_free == FEW << OH_POOL_LOG, "%zu", c.resident_free);
  oh_pool_free(pools[PIECES - 1]);
  oh_pool_trim(1);
  oh_pool_count(&c);
  EXPECT(c.resident_free == 0, "%zu", c.resident_free);
  oh_settings.thp[OH_SPACE_POOLS] = saved;
  for (size_t i = FEW; i < PIECES - 1; i++) oh_pool_free(pools[i]);
  give_all();
}

/* Pins belong to a page as long as it is used, and until the next thorough trim. */
static void pins(void)
{
  take_one();
  char *p = live[0];
  oh_pool_pin(p);
  oh_pool_pin(p + OH_PAGE - OH_POOL - ((uintptr_t)p & (OH_PAGE - 1)));
  EXPECT(oh_pool_pins(p) == 2, "%u", oh_pool_pins(p));
  oh_pool_trim(1);
  EXPECT(oh_pool_pins(p) == 0, "%u", oh_pool_pins(p));
  oh_pool_pin(p);
  give_all();
  take_one();
  EXPECT(oh_pool_pins(live[0]) == 0, "%u", oh_pool_pins(live[0]));
  give_all();
  void *foreign[] = { NULL, (void *)16, (void *)~(uintptr_t)15, (void *)((uintptr_t)1 << (OH_ADDRESS_BITS - 1)) };
  for (int i = 0; i < 4; i++) {
    oh_pool_pin(foreign[i]);
    EXPECT(oh_pool_pins(foreign[i]) == 0 && oh_pool_page_used(foreign[i]) == 0, "%p", foreign[i]);
  }
}

static void in_child(void)
{
  for (int i = 0; i < 100; i++) take_one();
  give_all();
}

static void forks(void)
{
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    in_child();
    _exit(0);
  }
  EXPECT(waitpid(child, &status, 0) == child && status == 0, "child: %d", status);
}

#ifdef OH_FAULTS
static void failures(void)
{
  for (long n = 1;; n++) {
    bool failed = false;
    oh_os_fail_after = n;
    for (size_t i = 0; i < 3 * PIECES; i++) {
      errno = 0;
      char *p = oh_pool_alloc();
      if (p == NULL) {
        EXPECT(errno == ENOMEM, "%d", errno);
        failed = true;
      } else live[lives++] = p, fill(p, (uintptr_t)p);
    }
    bool over = oh_os_fail_after > 0;
    oh_os_fail_after = 0;
    oh_pool_validate();
    give_all();
    oh_os_fail_after = n;
    oh_pool_trim(1);
    over = over && oh_os_fail_after > 0;
    oh_os_fail_after = 0;
    if (over && !failed) break;
  }
}
#endif

#if OH_DEBUG
static void twice(void)
{
  char *p = oh_pool_alloc(), *q = oh_pool_alloc();
  oh_pool_free(p);
  oh_pool_free(p);
  (void)q;
}
static void foreign(void) { oh_pool_free((void *)((uintptr_t)1 << (OH_ADDRESS_BITS - 2))); }
static void unaligned(void) { oh_pool_free((char *)oh_pool_alloc() + 16); }
static void misuse(void)
{
  EXPECT(try_aborts(twice) && try_aborts(foreign) && try_aborts(unaligned), "not detected");
}
#endif

#ifdef OH_FAULTS
/* While a thorough trim gives memory back, other threads take and free pools, and fork. */
static bool purged_beside;
static void *take_and_free(void *unused)
{
  void *p[8];
  for (int i = 0; i < 8; i++) p[i] = oh_pool_alloc();
  for (int i = 0; i < 8; i++) {
    EXPECT(p[i] != NULL, "pool");
    fill(p[i], 1);
  }
  for (int i = 0; i < 8; i++) oh_pool_free(p[i]);
  oh_pool_validate();
  return unused;
}
static void beside(void)
{
  pthread_t t;
  oh_os_purging = NULL;
  EXPECT(pthread_create(&t, NULL, take_and_free, NULL) == 0, "thread");
  EXPECT(pthread_join(t, NULL) == 0, "thread"); /* it would wait for ever for a lock that is held */
  purged_beside = true;
}
static void fork_beside(void)
{
  oh_os_purging = NULL;
  pid_t child = fork();
  EXPECT(child >= 0, "fork");
  if (child == 0) {
    oh_pool_validate();
    struct oh_pool_counters c;
    oh_pool_count(&c);
    size_t free = c.pages * PIECES - c.pools;
    for (size_t i = 0; i < free; i++) EXPECT(oh_pool_alloc() != NULL, "pool");
    oh_pool_count(&c);
    _exit(c.pages * PIECES == c.pools ? 0 : 3); /* nothing is held for ever */
  }
  int status;
  EXPECT(waitpid(child, &status, 0) == child && status == 0, "child: %x", status);
  purged_beside = true;
}
static void trim_beside_others(void)
{
  enum { COUNT = 300 };
  char *pools[COUNT];
  void (*const hooks[])(void) = { beside, fork_beside };
  for (int h = 0; h < 2; h++) {
    for (int i = 0; i < COUNT; i++) fill(pools[i] = oh_pool_alloc(), (uintptr_t)i);
    for (int i = 0; i < COUNT; i++)
      if (i % 3 != 0) oh_pool_free(pools[i]);
    purged_beside = false;
    oh_os_purging = hooks[h];
    oh_pool_trim(1);
    oh_os_purging = NULL;
    EXPECT(purged_beside, "nothing was purged");
    oh_pool_validate();
    for (int i = 0; i < COUNT; i += 3) {
      verify(pools[i], (uintptr_t)i);
      oh_pool_free(pools[i]);
    }
    oh_pool_validate();
  }
}
#endif

int main(int argc, char **argv)
{
  try_start(argc, argv);
  oh_start();
  TRY(model);
  TRY(rising);
  TRY(trim);
  TRY(nearly_full);
  TRY(pins);
  TRY(forks);
#if OH_DEBUG
  TRY(misuse);
#endif
#ifdef OH_FAULTS
  TRY(failures);
  TRY(trim_beside_others);
#endif
  TRY(threads);
  return try_end();
}
