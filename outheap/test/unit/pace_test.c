/* SPDX-License-Identifier: MIT */
/* Memory that follows the data: when a cycle is due, when the heap is compacted, what the reclaim thread gives back.
   Each part runs in a process of its own, as the policy remembers. */
#include "pace.h"
#include "pool.h"
#include "settings.h"
#include "space.h"
#include "start.h"
#include "try.h"
#include "try_child.h"

#define MS ((uint64_t)1000000)
#define S (1000 * MS)

/* In slices that come so often that none is cut. */
static double due(uint64_t nanoseconds)
{
  double sum = 0;
  for (; nanoseconds > MS; nanoseconds -= MS) sum += oh_pace_due(MS, 0, 1);
  return sum + oh_pace_due(nanoseconds, 0, 1);
}
/* But for the share of time that they may take. */
static void let_slices_be_long(void) { oh_settings.compact_pause = UINT64_MAX / 2; }

static bool near(double a, double b) { return a > b * 0.98 && a < b * 1.02; }

/* A cycle that came by time and freed so much of 100 MiB. What it saves and more is spent on it. */
static void cycle(size_t freed, uint64_t in_slices)
{
  struct oh_pace_heap h = { .live = 100 * M - freed, .swept = freed };
  (void)due((uint64_t)OH_PACE_PERIOD_MOST); /* a whole one, whatever the period */
  oh_pace_slice(in_slices);
  EXPECT(oh_pace_cycle(&h, 0, false) == 0, "there is nothing to compact");
}

static double period(void) { return 1e6 / due(1000000); }

/* Slices that cost what a cycle of the longest period saves, and 0.2 s more; nothing is left then. */
#define DEAR (OH_PACE_PERIOD_MOST / OH_PACE_SHARE + OH_PACE_SAVED)

/* What is free in pools is what domains said last; a compaction changes it at once. */
static void free_in_pools(void)
{
  EXPECT(oh_pace_free() == 0, "nothing was said");
  oh_pace_set_free(0, 3 * M);
  oh_pace_set_free(4095, 2 * M);
  oh_pace_set_free(4096, 7 * M); /* there is no such domain */
  EXPECT(oh_pace_free() == 5 * M, "%zu", oh_pace_free());
  struct oh_pace_heap h = { .live = 40 * M, .free = 5 * M, .swept = M }, after = { .live = 30 * M, .free = M };
  (void)oh_pace_cycle(&h, 0, false);
  oh_pace_set_free(0, M);
  oh_pace_set_free(4095, 0);
  oh_pace_moved(&after);
  EXPECT(oh_pace_free() == M && oh_pace_heap.free == M && oh_pace_heap.live == 30 * M, "%zu", oh_pace_free());
  EXPECT(oh_pace_heap.swept == M, "of the cycle: %zu", oh_pace_heap.swept);
}

/* Nothing is saved here: each cycle costs too much. */
static void pace(void)
{
  let_slices_be_long();
  double shortest = (double)OH_PACE_PERIOD, longest = (double)OH_PACE_PERIOD_MOST;
  EXPECT(near(period(), shortest), "%g", period());
  cycle(4 * M, DEAR);
  EXPECT(near(period(), (double)DEAR * OH_PACE_SHARE), "a share of the time: %g", period());
  double larger = 1e6 / oh_pace_due(MS, 192 * M, 1);
  EXPECT(near(larger, 2 * (double)DEAR * OH_PACE_SHARE), "of twice the 96 MiB that were left: %g", larger);
  /* One that came by allocation says nothing about use, but what it cost. */
  struct oh_pace_heap h = { .live = 100 * M };
  size_t before = oh_pace_counters.cycles;
  (void)oh_pace_cycle(&h, 0, false);
  (void)oh_pace_cycle(&h, 0, false);
  EXPECT(near(period(), shortest * 2) && oh_pace_counters.cycles == before, "%g", period());
  for (double wanted = shortest * 4; wanted < longest; wanted *= 2) {
    cycle(4 * M, MS); /* less than 5 % */
    EXPECT(near(period(), wanted), "%g, not %g", period(), wanted);
  }
  for (int i = 0; i < 10; i++) cycle(0, MS);
  EXPECT(near(period(), longest), "%g", period());
}

/* What is saved is spent on cycles that come sooner. */
static void savings(void)
{
  let_slices_be_long();
  double shortest = (double)OH_PACE_PERIOD, quick = (double)OH_PACE_QUICK;
  struct oh_pace_heap useful = { .live = 94 * M, .swept = 6 * M };
  /* By allocation, one in a second that costs 100 ms: nothing comes sooner, until one stalls. */
  for (int i = 0; i < 40; i++) {
    EXPECT(due(S) < 0.5, "in time");
    oh_pace_slice(100 * MS);
    EXPECT(oh_pace_cycle(&useful, 0, false) == 0, "nothing to compact");
  }
  double usual = 100e6 * OH_PACE_SHARE;
  EXPECT(near(period(), usual), "%g", period());
  double sum = 0;
  for (int i = 0; i < 800; i++) sum += oh_pace_due(MS, 0, 2);
  EXPECT(sum + due(OH_PACE_STALLED - 400 * MS) < 0.5, "not yet: two domains have run for 400 ms each");
  EXPECT(near(period(), quick), "stalled: %g", period());
  (void)due(OH_PACE_QUICK);
  /* 600 ms are saved: so long, those by time are quick, from the beginning. */
  int n = 0;
  do {
    (void)due(OH_PACE_QUICK);
    oh_pace_slice(100 * MS);
    (void)oh_pace_cycle(&useful, 0, false);
  } while (near(period(), quick) && ++n < 100);
  EXPECT(n >= 4 && n <= 7, "%d", n);
  EXPECT(near(period(), usual), "%g", period());
  /* They cost their share in the mean. */
  double spent = 0, time = 0;
  for (int i = 0; i < 1000; i++) {
    double part = 0;
    while (part < 1) part += due(10 * MS), time += 10e6;
    oh_pace_slice(100 * MS);
    spent += 100e6;
    (void)oh_pace_cycle(&useful, 0, false);
  }
  EXPECT(spent / time < 1.1 / OH_PACE_SHARE && spent / time > 0.9 / OH_PACE_SHARE, "%g", spent / time);
  /* One that is of no use ends that. */
  for (int i = 0; i < 100; i++) (void)due(S);
  struct oh_pace_heap useless = { .live = 100 * M };
  (void)oh_pace_cycle(&useless, 0, false);
  EXPECT(near(period(), shortest * 2), "%g", period());
}

/* What a cycle costs in a small heap is not measured, and says nothing about a large one. */
static void small_heaps(void)
{
  struct oh_pace_heap small = { .live = 8 * M, .swept = M }, large = { .live = 80 * M, .swept = 9 * M };
  (void)oh_pace_cycle(&small, 0, false);
  EXPECT(near(oh_pace_due(10 * MS, 300 * 1000000, 1), 10. / 15000), "a guess: 300 ms in 15 s");
  oh_pace_slice(10 * MS);
  (void)oh_pace_cycle(&large, 0, false);
  EXPECT(near(oh_pace_due(10 * MS, 80 * M, 1), 1e7 / (double)OH_PACE_PERIOD), "what the last one has cost");
}

/* A slice does no more because of time than what takes as long as a compaction may, nor than a share of the time since
   the last one, but for OH_PACE_SLICE. */
static void slices(void)
{
  oh_settings.compact_pause = 10 * MS;
  EXPECT(near(oh_pace_due(S, 0, 1), 1e9 / (double)OH_PACE_PERIOD), "a small heap, as much as is due");
  EXPECT(near(oh_pace_due(10 * MS, 300 * 1000000, 1), 10. / 15000), "before there was a cycle: 300 ms in 15 s");
  EXPECT(near(oh_pace_due(S, 100 * 1000000, 1), 0.1), "100 MB take 100 ms");
  EXPECT(near(oh_pace_due(200 * MS, 20 * 1000000, 1), 0.2), "stalled: 4 ms of 20");
  EXPECT(near(oh_pace_due(80 * MS, 20 * 1000000, 1), 0.1), "2 ms at least");
  oh_settings.compact_pause = MS;
  EXPECT(near(oh_pace_due(80 * MS, 20 * 1000000, 1), 0.05), "but no longer than a compaction");
  oh_settings.compact_pause = 10 * MS;
  EXPECT(near(oh_pace_due(5 * MS, 20 * 1000000, 1), 5e6 / (double)OH_PACE_QUICK), "all that is due, stalled");
  struct oh_pace_heap h = { .live = 94 * M, .swept = 6 * M };
  oh_pace_slice(500 * MS);
  (void)oh_pace_cycle(&h, 0, false);
  EXPECT(near(oh_pace_due(S, 100 * 1000000, 1), 10. / 500), "as the last cycle has shown");
  oh_settings.compact_pause = 100 * MS;
  EXPECT(near(oh_pace_due(S, 100 * 1000000, 1), 1. / 25), "the setting, and the share of time: a cycle in 25 s");
  EXPECT(near(oh_pace_due(S, 200 * 1000000, 1), 1. / 50), "the heap has grown: a cycle in 50 s");
  EXPECT(near(oh_pace_due(S, 50 * 1000000, 1), 1. / 25), "it is smaller: that is not known yet");
  EXPECT(oh_pace_share(MS, 0) == 1 && near(oh_pace_share(MS, 1000000000), 0.001), "a guess");
}

static double ask(size_t live, size_t free, size_t partial, uint64_t now, bool idle)
{
  struct oh_pace_heap h = { .live = live, .free = free, .partial = partial, .swept = M };
  return oh_pace_cycle(&h, now, idle);
}

static void compaction(void)
{
  uint64_t now = 1000 * S;
  oh_settings.compact_pause = 10 * MS;
  oh_settings.idle_pause = 30 * MS;
  oh_settings.reclaim = false;
  EXPECT(ask(8 * M, 64 * M, 40 * M, now, false) == 0, "not without the setting");
  oh_settings.reclaim = true;
  EXPECT(ask(M, OH_PACE_LEAST - M, 4 * M, now, false) == 0, "a small heap");
  EXPECT(ask(100 * M, 30 * M, 20 * M, now, false) == 0, "less than a quarter is free");
  EXPECT(ask(8 * M, 64 * M, 0, now, false) == 0, "no pool has room");
  EXPECT(oh_pace_counters.refused == 0, "these are not refused");
  EXPECT(ask(8 * M, 64 * M, 32 * M, now, false) == 1, "it pays, and is short");
  /* A part of the pools, where all would take too long: 8 MiB of live data cost 1.4 ms of 10, all pools 12.3, and 7.4
     if they are only read. */
  double part = ask(8 * M, 100 * M, 60 * M, now, false);
  EXPECT(part > 0.2 && part < 0.3 && oh_pace_more(), "%g", part);
  double more = ask(20 * M, 300 * M, 188 * M, now, true);
  EXPECT(more > 0.2 && more < 0.3, "an idle program may be stopped for longer: %g", more);
  EXPECT(ask(M, 2000 * M, 1000 * M, now, true) == 0 && oh_pace_counters.refused == 1, "reading them takes too long");
  EXPECT(ask(100 * M, 400 * M, 300 * M, now, false) == 0 && oh_pace_counters.refused == 2, "live data alone");
  EXPECT(!oh_pace_more(), "it would not be better later");
  EXPECT(ask(8 * M, 64 * M, 32 * M, now, false) == 1 && !oh_pace_more(), "all");
}

/* Compactions take a share of the time. */
static void share(void)
{
  uint64_t now = 1000 * S;
  oh_settings.reclaim = true;
  oh_settings.compact_pause = 10 * MS;
  EXPECT(ask(8 * M, 64 * M, 32 * M, now, false) == 1, "the first one");
  oh_pace_compacted(now, 6 * MS);
  EXPECT(oh_pace_counters.compactions == 1 && oh_pace_counters.longest == 6000, "counters");
  for (int i = 0; i < 2; i++) EXPECT(ask(8 * M, 2 * M, M, now, false) == 0, "it has gone back, and stays away");
  EXPECT(ask(8 * M, 64 * M, 32 * M, now + 100 * MS, false) == 0 && oh_pace_counters.refused == 1, "too soon");
  EXPECT(oh_pace_more(), "later");
  EXPECT(ask(8 * M, 64 * M, 32 * M, now + S, false) == 1, "later");
}

/* What compactions cost is learnt. */
static void learning(void)
{
  uint64_t now = 1000 * S;
  oh_settings.reclaim = true;
  oh_settings.compact_pause = 10 * MS;
  double before = ask(8 * M, 100 * M, 60 * M, now, false);
  oh_pace_compacted(now, 30 * MS); /* 10 were predicted */
  now += 1000 * S;
  double after = ask(8 * M, 100 * M, 60 * M, now, false);
  EXPECT(after < before * 0.5, "%g, then %g", before, after);
  /* What forbids them is forgotten by and by. */
  for (int i = 0; i < 20; i++) {
    oh_pace_compacted(now, MS);
    now += 1000 * S;
    after = ask(8 * M, 100 * M, 60 * M, now, false);
  }
  EXPECT(after > before * 1.5, "%g, then %g", before, after);
}

/* Memory that is taken again at once was given back too soon. */
static void patience(void)
{
  uint64_t now = 1000 * S;
  oh_settings.reclaim = true;
  oh_settings.compact_pause = 10 * MS;
  uint64_t wait = S;
  for (int i = 0; i < 4; i++) {
    EXPECT(ask(8 * M, 64 * M, 32 * M, now, false) == 1, "round %d", i);
    oh_pace_compacted(now, 6 * MS);
    now += S;
    wait *= 2;
    EXPECT(ask(70 * M, 2 * M, M, now, false) == 0, "all is in use again");
    EXPECT(ask(8 * M, 64 * M, 32 * M, now, false) == 0, "not yet, round %d", i);
    now += wait + S;
  }
  /* When it stays away, compactions become frequent again. */
  for (int i = 0; i < 8; i++) {
    now += 100 * S;
    EXPECT(ask(8 * M, 64 * M, 32 * M, now, false) == 1, "round %d", i);
    oh_pace_compacted(now, 6 * MS);
    for (int n = 0; n < 2; n++) (void)ask(8 * M, 2 * M, M, now, false);
  }
  EXPECT(ask(8 * M, 64 * M, 32 * M, now + S, false) == 1, "soon");
}

/* What a child shares with its parent is not marked for the sake of time. */
static void child(void)
{
  let_slices_be_long();
  struct oh_pace_heap h = { .live = 94 * M, .swept = 6 * M };
  oh_pace_forked();
  for (int i = 0; i < 2; i++) {
    EXPECT(oh_pace_shares() && due(S) == 0, "cycle %d", i);
    EXPECT(oh_pace_cycle(&h, 0, false) == 0, "there is nothing to compact");
  }
  EXPECT(!oh_pace_shares() && due(S) > 0, "all has been marked");
}

/* A daemon: the process between is gone. */
static void daemon_of(int out)
{
  oh_pace_fork();
  if (fork() != 0) _exit(0);
  oh_pace_forked();
  for (int i = 0; i < 60000 && oh_pace_shares(); i++) usleep(1000);
  char c = oh_pace_shares() ? 'n' : 'y';
  _exit(write(out, &c, 1) == 1 ? 0 : 1);
}

static void forks(void)
{
  let_slices_be_long();
  EXPECT(!oh_pace_shares() && due(S) > 0, "no child");
  oh_pace_fork();
  in_child(NULL, child);
  EXPECT(!oh_pace_shares() && !oh_pace_may_share(), "a parent");
  oh_pace_fork_done();
  EXPECT(!oh_pace_may_share(), "it has no child");
  pid_t waiting = fork();
  if (waiting == 0) pause(), _exit(1);
  oh_pace_fork_done();
  EXPECT(!oh_pace_shares() && due(S) > 0 && oh_pace_may_share() && oh_pace_may_share(), "it has one");
  cycle(4 * M, MS);
  EXPECT(!oh_pace_may_share(), "a cycle has copied everything");
  oh_pace_fork_done();
  EXPECT(kill(waiting, SIGKILL) == 0 && waitpid(waiting, NULL, 0) == waiting, "it ends");
  EXPECT(!oh_pace_may_share(), "it has none any more");
  int end[2];
  char c = 0;
  EXPECT(pipe(end) == 0, "pipe");
  if (fork() == 0) daemon_of(end[1]);
  EXPECT(read(end[0], &c, 1) == 1 && c == 'y', "its parent is gone");
}

static void overhead(void)
{
  uint64_t now = 1000 * S;
  oh_settings.reclaim = true;
  EXPECT(oh_pace_overhead() == OH_PACE_OVERHEAD, "by default");
  oh_pace_set_overhead(OH_PACE_OVERHEAD); /* as it was: nobody has set it */
  EXPECT(ask(30 * M, 40 * M, 20 * M, now, false) == 1, "133 %%");
  oh_pace_set_overhead(200);
  EXPECT(oh_pace_overhead() == 200, "%zu", oh_pace_overhead());
  EXPECT(ask(30 * M, 40 * M, 20 * M, now, false) == 0 && ask(20 * M, 40 * M, 20 * M, now, false) == 1, "200 %%");
  oh_pace_set_overhead(OH_PACE_OVERHEAD_NEVER);
  EXPECT(ask(M, 400 * M, 20 * M, now, false) == 0, "never");
  oh_pace_set_overhead(0);
  EXPECT(ask(100 * M, 0, 0, now, false) == 1, "always");
  oh_pace_read("v=0x400,O=300,s=4k");
  EXPECT(oh_pace_overhead() == 300, "%zu", oh_pace_overhead());
  oh_pace_read("O=,OO=7,o=80,O=x");
  oh_pace_read(NULL);
  EXPECT(oh_pace_overhead() == 300, "%zu", oh_pace_overhead());
  oh_pace_read("O=1M");
  EXPECT(oh_pace_overhead() == 1 << 20, "a unit: %zu", oh_pace_overhead());
  oh_pace_read("O=2k,b");
  EXPECT(oh_pace_overhead() == 2048, "another: %zu", oh_pace_overhead());
  oh_pace_read("b,O=0x12c");
  EXPECT(oh_pace_overhead() == 300, "hexadecimal: %zu", oh_pace_overhead());
  struct oh_pace_heap pressed = { .live = 100 * M, .free = M, .pressed = true };
  EXPECT(oh_pace_cycle(&pressed, now, false) == 1, "for the sake of the limit");
  oh_pace_read("O=99999999999999999999999");
  EXPECT(oh_pace_overhead() == OH_PACE_OVERHEAD_NEVER, "beyond all numbers: %zu", oh_pace_overhead());
}

/* Free pools of pages in use go back when nothing has happened there for two looks. */
static void pools(void)
{
  enum { PAGES = 4, ALL = PAGES * OH_POOLS_PER_PAGE };
  char *pool[ALL];
  oh_start();
  oh_space_delay(OH_SPACE_POOLS, true);
  for (int i = 0; i < ALL; i++) {
    pool[i] = oh_pool_alloc();
    EXPECT(pool[i] != NULL, "pool");
    memset(pool[i], 1, OH_POOL);
  }
  size_t freed = 0;
  for (int i = 0; i < ALL; i++)
    if (i % 8 != 0) {
      oh_pool_free(pool[i]);
      freed += OH_POOL;
    }
  EXPECT(oh_pool_decay() == 0, "just freed");
  size_t bytes = oh_pool_decay();
  EXPECT(bytes == freed, "%zu of %zu", bytes, freed);
  EXPECT(oh_pool_decay() == 0 && oh_pool_decay() == 0, "once only");
  for (int i = 0; i < ALL; i += 8)
    for (size_t n = 0; n < OH_POOL; n++) EXPECT(pool[i][n] == 1, "what is in use stays");
  /* A page where a pool comes and goes is left alone. */
  char *p = oh_pool_alloc();
  memset(p, 1, OH_POOL);
  for (int i = 0; i < 6; i++) {
    oh_pool_free(p);
    EXPECT(oh_pool_decay() == 0, "look %d", i);
    p = oh_pool_alloc();
  }
  oh_pool_free(p);
  (void)oh_pool_decay();
  EXPECT(oh_pool_decay() == OH_POOL, "and then not");
  oh_pool_validate();
}

/* Whole large pages go back when they were free between three looks, but for an allowance. */
static void spaces(void)
{
  const size_t PAGES = 24 * M / OH_PAGE; /* three times the allowance, whatever the size of a page */
  struct oh_space_counters c;
  oh_start();
  oh_space_delay(OH_SPACE_POOLS, true);
  oh_settings.huge.share = 0;
  char *block = oh_space_alloc(OH_SPACE_POOLS, PAGES * OH_PAGE, true, NULL);
  EXPECT(block != NULL, "block");
  memset(block, 1, PAGES * OH_PAGE);
  size_t before = oh_space_decay(OH_SPACE_POOLS) + oh_space_decay(OH_SPACE_POOLS);
  EXPECT(before == 0, "nothing is free: %zu", before);
  oh_space_free(OH_SPACE_POOLS, block, PAGES * OH_PAGE);
  oh_space_count(OH_SPACE_POOLS, &c);
  size_t dirty = c.dirty;
  EXPECT(dirty >= PAGES * OH_PAGE, "%zu", dirty);
  size_t bytes = 0;
  for (int i = 0; i < 4; i++) bytes += oh_space_decay(OH_SPACE_POOLS);
  oh_space_count(OH_SPACE_POOLS, &c);
  EXPECT(bytes == dirty - 8 * M && c.dirty == 8 * M, "%zu of %zu, %zu are left", bytes, dirty, c.dirty);
  for (int i = 0; i < 4; i++) EXPECT(oh_space_decay(OH_SPACE_POOLS) == 0, "once only");
  /* What is used in turns stays. */
  for (int i = 0; i < 6; i++) {
    block = oh_space_alloc(OH_SPACE_POOLS, PAGES * OH_PAGE, true, NULL);
    memset(block, 1, PAGES * OH_PAGE);
    EXPECT(oh_space_decay(OH_SPACE_POOLS) == 0, "round %d", i);
    oh_space_free(OH_SPACE_POOLS, block, PAGES * OH_PAGE);
    EXPECT(oh_space_decay(OH_SPACE_POOLS) == 0, "round %d", i);
  }
}

static void the_pace(void) { in_child(NULL, pace); }
static void what_a_slice_does(void) { in_child(NULL, slices); }
static void of_small_heaps(void) { in_child(NULL, small_heaps); }
static void what_is_saved(void) { in_child(NULL, savings); }
static void when_to_compact(void) { in_child(NULL, compaction); }
static void share_of_time(void) { in_child(NULL, share); }
static void what_it_costs(void) { in_child(NULL, learning); }
static void taken_again(void) { in_child(NULL, patience); }
static void forked(void) { in_child(NULL, forks); }
static void max_overhead(void) { in_child(NULL, overhead); }
static void what_is_free(void) { in_child(NULL, free_in_pools); }
static void free_pools(void) { in_child("thp=off", pools); }
static void free_pages(void) { in_child("thp=off,keep=8M", spaces); }

int main(int argc, char **argv)
{
  try_start(argc, argv);
  TRY(the_pace);
  TRY(of_small_heaps);
  TRY(what_is_saved);
  TRY(what_a_slice_does);
  TRY(when_to_compact);
  TRY(share_of_time);
  TRY(what_it_costs);
  TRY(taken_again);
  TRY(forked);
  TRY(max_overhead);
  TRY(what_is_free);
  TRY(free_pools);
  TRY(free_pages);
  return try_end();
}
