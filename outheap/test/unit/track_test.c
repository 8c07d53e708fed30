/* SPDX-License-Identifier: MIT */
/* Tracked memory: which words are visited, when, and what is dropped; writers beside a marker. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "region.h"
#include "base.h"
#include "outheap_marker.h"
#include "os.h"
#include "start.h"
#include "table.h"
#include "try.h"
#include <sys/mman.h>

enum { REGIONS = 40, WORDS = 20000 };
static uintptr_t *region[REGIONS]; /* each in a chunk of its own */
static uintptr_t heap;             /* a chunk of kind OH_KIND_MAJOR, without memory */
static size_t darkened, depth, deepest;
static uintptr_t last;

/* As the runtime's: it notes regions, and may come back. */
static void darken(uintptr_t v)
{
  depth++;
  if (depth > deepest) deepest = depth;
  (void)__atomic_add_fetch(&darkened, 1, __ATOMIC_RELAXED);
  last = v;
  if (oh_table_kind(v) == OH_KIND_REGION) oh_region_reach(v, OH_REGION_BY_BLOCK);
  depth--;
}
static void forget(uintptr_t begin, uintptr_t end) { (void)begin, (void)end; }

static void store(uintptr_t *slot, uintptr_t v)
{
  __atomic_store_n(slot, v, __ATOMIC_RELEASE);
  oh_track_wrote((uintptr_t)slot, v);
}

static void set_up(void)
{
  void *below = (void *)((uintptr_t)1 << 37); /* of the end of the table, also where it is short */
  char *p = mmap(below, (REGIONS + 2) * OH_CHUNK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  uintptr_t at = OH_ROUND_UP((uintptr_t)p, OH_CHUNK);
  EXPECT(p != MAP_FAILED, "address space");
  for (int i = 0; i < REGIONS; i++, at += OH_CHUNK) {
    region[i] = (uintptr_t *)at;
    EXPECT(mprotect(region[i], WORDS * sizeof(uintptr_t), PROT_READ | PROT_WRITE) == 0, "memory");
    for (size_t j = 0; j < WORDS; j++) region[i][j] = 1;
    EXPECT(oh_table_claim(at, OH_KIND_REGION), "claim");
  }
  heap = at;
  EXPECT(oh_table_claim(heap, OH_KIND_MAJOR), "claim");
  oh_region_has_cycles = true;
  oh_track_runtime = (struct oh_track_runtime){ &darken, &forget, NULL };
}

static void add(int i) { EXPECT(oh_track_add((uintptr_t)region[i], WORDS * sizeof(uintptr_t)), "no memory"); }
static size_t count(int i) { return oh_track_count((uintptr_t)region[i]); }

static size_t cycle(uintptr_t met)
{
  oh_track_turn();
  oh_track_cycle();
  darkened = 0;
  oh_track_roots();
  if (met != 0) oh_region_reach(met, OH_REGION_BY_ROOT);
  return darkened;
}

static void words(void)
{
  EXPECT(oh_track_limit == 0, "before");
  store(&region[0][3], heap + 8);
  EXPECT(count(0) == 0, "not tracked yet");
  region[0][3] = 1;
  add(0);
  EXPECT(oh_track_limit != 0 && count(0) == 0, "empty");
  store(&region[0][3], heap + 16);
  store(&region[0][WORDS - 1], heap + 24);
  store(&region[0][64], (uintptr_t)region[0] + 8); /* to itself */
  store(&region[0][65], 77);                       /* an immediate */
  store(&region[1][5], heap + 8);                  /* not tracked */
  EXPECT(count(0) == 2, "%zu", count(0));
  EXPECT(cycle(0) == 0 && oh_track_is_unreached((uintptr_t)region[0] + 40), "not met");
  EXPECT(cycle((uintptr_t)region[0] + 40) == 2 && !oh_track_is_unreached((uintptr_t)region[0]), "met: %zu", darkened);
  oh_region_reach((uintptr_t)region[0], OH_REGION_BY_ROOT);
  EXPECT(darkened == 2, "once in a cycle");
  EXPECT(!oh_track_is_unreached((uintptr_t)region[1]) && !oh_track_is_unreached(heap + 8), "only what is tracked");
  /* overwritten: dropped when it is met, and only then */
  store(&region[0][3], 5);
  EXPECT(count(0) == 2 && cycle(0) == 0 && count(0) == 2, "still there");
  EXPECT(cycle((uintptr_t)region[0]) == 1 && count(0) == 1 && last == heap + 24, "dropped");
  /* a root */
  oh_track_keep((uintptr_t)region[0], true);
  EXPECT(cycle(0) == 1 && !oh_track_is_unreached((uintptr_t)region[0]), "kept");
  oh_track_keep((uintptr_t)region[0], false);
  EXPECT(cycle(0) == 0, "not kept");
  oh_track_remove((uintptr_t)region[0]);
  EXPECT(oh_track_limit == 0 && count(0) == 0 && !oh_track_is_unreached((uintptr_t)region[0]), "removed");
  EXPECT(cycle((uintptr_t)region[0]) == 0, "and not visited");
}

/* Marking begins later than the cycle. */
static void late(void)
{
  add(0);
  store(&region[0][3], heap + 8);
  darkened = 0;
  EXPECT(!oh_track_is_unreached((uintptr_t)region[0]), "reached");
  oh_region_reach((uintptr_t)region[0], OH_REGION_BY_ROOT);
  EXPECT(darkened == 0, "before marking nothing is darkened");
  oh_track_cycle();
  EXPECT(oh_track_is_unreached((uintptr_t)region[0]), "unreached");
  oh_track_roots();
  EXPECT(darkened == 1 && !oh_track_is_unreached((uintptr_t)region[0]), "made since the cycle began: a root");
  oh_track_turn();
  oh_track_cycle();
  oh_track_roots();
  EXPECT(darkened == 1 && oh_track_is_unreached((uintptr_t)region[0]), "a root only once");
  EXPECT(outheap_marker_met(region[0], 8) == 0, "an older reach bit means nothing");
  oh_region_reach((uintptr_t)region[0], OH_REGION_BY_ROOT);
  EXPECT(darkened == 2 && outheap_marker_met(region[0], 8) == OUTHEAP_MARKER_BY_ROOT, "reached");
  oh_track_remove((uintptr_t)region[0]);
  outheap_marker_clear(region[0], 8);
}

static void forward(void *data, uintptr_t v, uintptr_t *slot)
{
  ++*(size_t *)data;
  *slot = v + 8;
}

/* What compaction does. */
static void each(void)
{
  add(1);
  add(2);
  for (int i = 0; i < 100; i++) {
    store(&region[1][i * 190], heap + 16 * (uintptr_t)i);
    store(&region[2][i], (uintptr_t)region[1] + 8); /* another region does not move */
  }
  size_t n = 0;
  oh_track_each(&forward, &n);
  EXPECT(n == 100, "%zu", n);
  for (int i = 0; i < 100; i++)
    EXPECT(region[1][i * 190] == heap + 16 * (uintptr_t)i + 8 && region[2][i] == (uintptr_t)region[1] + 8, "%d", i);
  oh_track_remove((uintptr_t)region[1]);
  n = 0;
  oh_track_each(&forward, &n);
  EXPECT(n == 0, "removed");
  oh_track_remove((uintptr_t)region[2]);
}

/* A chain of regions is followed without recursion. */
static void chain(void)
{
  for (int i = 0; i < REGIONS; i++) add(i);
  for (int i = 0; i < REGIONS; i++) {
    store(&region[i][7], (uintptr_t)region[(i + 1) % REGIONS] + 8); /* a ring */
    store(&region[i][9], heap + 8);
  }
  deepest = 0;
  EXPECT(cycle((uintptr_t)region[3]) == 2 * REGIONS, "%zu", darkened);
  EXPECT(deepest == 1, "%zu deep", deepest);
  for (int i = 0; i < REGIONS; i++) {
    EXPECT(!oh_track_is_unreached((uintptr_t)region[i]), "%d", i);
    oh_track_remove((uintptr_t)region[i]);
  }
}

static size_t asked;
static bool agree(void) { return ++asked, true; }
static bool refuse(void) { return ++asked, false; }

/* Darkens what waits, in pieces, from hands that are full or empty. */
static size_t take(size_t most, bool leave)
{
  struct oh_track *hands = NULL;
  size_t before = darkened;
  for (; most != 0 && (hands != NULL || oh_track_is_waiting()); most--) {
    size_t last = darkened, work = oh_track_mark(&hands);
    EXPECT(darkened - last <= OH_TRACK_PIECE && work >= darkened - last && work < 4000, "%zu, %zu", darkened - last,
           work);
    if (leave) oh_track_leave(hands), hands = NULL;
  }
  oh_track_leave(hands);
  return darkened - before;
}

/* A region that is met waits for the marker, who comes to it piece by piece. */
static void pieces(void)
{
  enum { STORED = 10000 };
  oh_track_runtime.more_to_mark = &agree;
  for (int i = 0; i < 3; i++) add(i);
  for (int i = 0; i < STORED; i++) store(&region[0][2 * i], heap + 8);
  for (int i = 0; i < 100; i++) store(&region[2][i * 199], heap + 8);
  asked = 0;
  EXPECT(cycle((uintptr_t)region[0]) == 0 && asked == 1 && oh_track_is_waiting(), "it waits");
  EXPECT(!oh_track_is_unreached((uintptr_t)region[0]), "but was met");
  oh_region_reach((uintptr_t)region[0], OH_REGION_BY_ROOT);
  EXPECT(asked == 1, "once");
  EXPECT(take(3, false) == 3 * OH_TRACK_PIECE, "three pieces");
  for (int i = 0; i < 3 * OH_TRACK_PIECE; i++) store(&region[0][2 * i], 1); /* the marker was there */
  for (int i = STORED - 500; i < STORED; i++) store(&region[0][2 * i], 1);   /* and was not */
  oh_region_reach((uintptr_t)region[1], OH_REGION_BY_ROOT);
  oh_region_reach((uintptr_t)region[2], OH_REGION_BY_ROOT);
  EXPECT(take(SIZE_MAX, true) == STORED - 3 * OH_TRACK_PIECE - 500 + 100 && !oh_track_is_waiting(), "the rest");
  EXPECT(count(0) == STORED - 500, "%zu: dropped where the marker found something else", count(0));
  EXPECT(cycle((uintptr_t)region[0]) == 0 && take(SIZE_MAX, false) == STORED - 3 * OH_TRACK_PIECE - 500, "next cycle");
  /* ahead of the marker; beside others that wait */
  EXPECT(!oh_track_hasten((uintptr_t)region[0]), "nothing waits");
  (void)cycle((uintptr_t)region[2]);
  oh_region_reach((uintptr_t)region[0], OH_REGION_BY_ROOT);
  oh_region_reach((uintptr_t)region[1], OH_REGION_BY_ROOT);
  EXPECT(oh_track_hasten((uintptr_t)region[0]) && darkened == 4 * OH_TRACK_PIECE, "%zu", darkened);
  while (oh_track_hasten((uintptr_t)region[0])) {}
  EXPECT(darkened == count(0) && take(SIZE_MAX, true) == 100, "%zu", darkened);
  /* one that ends is darkened at once */
  (void)cycle((uintptr_t)region[2]);
  oh_region_reach((uintptr_t)region[0], OH_REGION_BY_ROOT);
  oh_region_reach((uintptr_t)region[1], OH_REGION_BY_ROOT);
  EXPECT(take(1, true) == 0, "the empty one");
  darkened = 0;
  oh_track_remove((uintptr_t)region[2]);
  EXPECT(darkened == 100, "%zu", darkened);
  (void)take(SIZE_MAX, false);
  /* who cannot mark later does it now */
  oh_track_runtime.more_to_mark = &refuse;
  EXPECT(cycle((uintptr_t)region[0]) == count(0) && !oh_track_is_waiting(), "%zu", darkened);
  oh_track_runtime.more_to_mark = NULL;
  oh_track_remove((uintptr_t)region[0]);
  oh_track_remove((uintptr_t)region[1]);
}

/* Writers change words between pointers and numbers while a marker drops what holds numbers. When they have ended, each
   word that holds a pointer is known. What could be lost is lost in a short moment before that, so there are many
   rounds. */
enum { ROUNDS = 2000, WRITERS = 2, SHARED = 8, STORES = 200 };
static int running;
static uint64_t seed;

static void *write_words(void *arg)
{
  uint64_t state = seed + (uintptr_t)arg;
  for (int i = 0; i < STORES; i++) {
    uintptr_t *slot = &region[0][try_below(&state, SHARED)];
    store(slot, try_below(&state, 2) ? heap + 8 : 1);
  }
  (void)__atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static void beside(void)
{
  add(0);
  for (int round = 0; round < ROUNDS; round++) {
    pthread_t writer[WRITERS];
    seed = try_seed + 100 * (unsigned)round;
    running = WRITERS;
    for (uintptr_t i = 0; i < WRITERS; i++)
      EXPECT(pthread_create(&writer[i], NULL, write_words, (void *)i) == 0, "thread");
    while (oh_load_seq_cst(&running) != 0) {
      oh_track_cycle();
      oh_track_reach((uintptr_t)region[0]);
    }
    for (int i = 0; i < WRITERS; i++) pthread_join(writer[i], NULL);
    size_t pointers = 0;
    for (int i = 0; i < SHARED; i++) pointers += region[0][i] == heap + 8;
    EXPECT(cycle((uintptr_t)region[0]) == pointers && count(0) == pointers, "round %d: %zu visited, %zu known of %zu",
           round, darkened, count(0), pointers);
  }
  oh_track_remove((uintptr_t)region[0]);
}

static void refused(void)
{
#ifdef OH_FAULTS
  long failures = 0;
  for (oh_os_fail_after = 1; !oh_track_add((uintptr_t)region[0], WORDS * sizeof(uintptr_t)); failures++) {
    EXPECT(failures < 100 && oh_track_limit == 0 && !oh_track_is_unreached((uintptr_t)region[0]), "nothing happened");
    oh_os_fail_after = failures + 2;
  }
  oh_os_fail_after = 0;
  EXPECT(failures >= 1 && count(0) == 0, "%ld failures", failures);
  oh_track_remove((uintptr_t)region[0]);
#endif
  EXPECT(outheap_marker_can_track() == (OH_TAINT != 0), "offered");
  EXPECT(!outheap_marker_track((void *)heap, OH_PAGE), "not a region");
  EXPECT(!outheap_marker_track((char *)region[0] + 8, OH_PAGE), "not a chunk");
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  setenv("OUTHEAP", "thp=off", 1);
  oh_start();
  set_up();
  TRY(words);
  TRY(late);
  TRY(each);
  TRY(chain);
  TRY(pieces);
  TRY(refused); /* before there are threads: over sbrk there is no memory then */
  TRY(beside);
  return try_end();
}
