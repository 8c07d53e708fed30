/* SPDX-License-Identifier: MIT */
/* The policy of minor heaps that adapt themselves, with programs that are simulated: what a collection costs, and how
   long the program runs for a word that it allocates. */
#include "minor.h"
#include "settings.h"
#include "try.h"

#define K ((size_t)1024)

struct program {
  double mutator;  /* nanoseconds for each word allocated */
  double fixed;    /* and of each collection */
  double survival; /* nanoseconds for each word allocated, with the smallest heap */
  double falls;    /* what is left of that when the heap doubles */
};

struct run {
  struct oh_minor policy;
  size_t words;
  uint64_t now;
  unsigned changes, largest_at; /* collections until the size first was the largest; 0: never */
};

static double of_survival(struct program const *p, size_t words)
{
  double cost = p->survival;
  for (size_t w = oh_settings.minor_least; w < words; w *= 2) cost *= p->falls;
  return cost;
}

/* One collection, with `part` thousandths of the heap allocated. */
static void collect(struct run *r, struct program const *p, unsigned part, bool alone)
{
  size_t allocated = r->words / 1000 * part;
  r->now += 1000 + (uint64_t)(p->mutator * (double)allocated);
  oh_minor_begin(&r->policy, r->now);
  r->now += (uint64_t)(p->fixed + of_survival(p, r->words) * (double)allocated);
  oh_minor_end(&r->policy, r->now, allocated, r->words, alone);
  size_t wanted = oh_minor_choose(&r->policy, r->words);
  EXPECT(wanted == r->words || (wanted >= oh_settings.minor_least && wanted <= oh_settings.minor_most), "%zu", wanted);
  if (wanted == r->words) return;
  oh_minor_changed(&r->policy, r->words, wanted);
  r->words = wanted;
  r->changes++;
}

static struct run run(struct program p, size_t words, unsigned collections)
{
  struct run r = { .words = words };
  for (unsigned i = 1; i <= collections; i++) {
    collect(&r, &p, 999, true);
    if (r.largest_at == 0 && r.words == oh_settings.minor_most) r.largest_at = i;
  }
  return r;
}

/* A large fixed part, as of a deep stack: each doubling halves the cost. */
static void roots(void)
{
  struct run r = run((struct program){ 1, 1e6, 0.1, 1 }, 32 * K, 1000);
  EXPECT(r.words == oh_settings.minor_most && r.changes == 7, "%zu words, %u changes", r.words, r.changes);
  EXPECT(r.largest_at <= 60, "after %u collections", r.largest_at);
}

/* What lives for a while dies in a larger heap. It grows until too little time is left to gain. */
static void falling(void)
{
  struct run r = run((struct program){ 5, 5000, 1, 0.6 }, 32 * K, 5000);
  EXPECT(r.words == 1024 * K, "%zu", r.words);
  EXPECT(r.changes <= 8, "%u changes", r.changes);
}

/* All survives in any heap: it does not stay larger than is easy, and attempts become rare. */
static void survivors(void)
{
  struct program p = { 2, 5000, 5, 1 };
  struct run r = run(p, 256 * K, 1000);
  unsigned first = r.changes;
  for (int i = 0; i < 9000; i++) collect(&r, &p, 999, true);
  EXPECT(first > 0 && first <= 20 && r.changes - first <= 24, "%u, then %u changes", first, r.changes - first);
  EXPECT(r.words <= 2 * OH_MINOR_EASY, "%zu", r.words);
  /* It is judged anew when the program changes: soon enough after thousands of collections. */
  struct program q = { 1, 1e6, 0.1, 1 };
  unsigned n = 0;
  for (; n < 1200 && r.words < oh_settings.minor_most; n++) collect(&r, &q, 999, true);
  EXPECT(r.words == oh_settings.minor_most, "%zu after %u", r.words, n);
}

/* Hardly any time goes into collections: down to the least. And with any program the size settles. */
static void quiet(void)
{
  struct run r = run((struct program){ 20, 100, 0.001, 1 }, 4096 * K, 3000);
  EXPECT(r.words == oh_settings.minor_least, "%zu", r.words);
  uint64_t random = try_seed;
  for (int i = 0; i < 200; i++) {
    struct program p = { 0.5 + (double)try_below(&random, 100) / 10, (double)try_below(&random, 1000000),
                         (double)try_below(&random, 100) / 20, 0.5 + (double)try_below(&random, 51) / 100 };
    struct run s = run(p, 32 * K << try_below(&random, 8), 20000);
    EXPECT(s.changes <= 60, "%u changes of %g %g %g %g", s.changes, p.mutator, p.fixed, p.survival, p.falls);
  }
}

/* Others collect: a quarter each time, down to the least; not when this domain is alone, where such a collection was
   asked for, nor when it allocates. */
static void idle(void)
{
  struct program p = { 1, 1000, 1, 1 };
  struct run r = { .words = 2048 * K, .policy.wait = 100 };
  for (int i = 0; i < 9; i++) collect(&r, &p, 10, false);
  EXPECT(r.words == 512 * K, "%zu", r.words);
  for (int i = 0; i < 30; i++) collect(&r, &p, 0, false);
  EXPECT(r.words == oh_settings.minor_least && r.changes == 3, "%zu, %u", r.words, r.changes);
  struct program q = { 1, 1e6, 0.1, 1 };
  for (int i = 0; i < 60; i++) collect(&r, &q, 999, false);
  EXPECT(r.words == oh_settings.minor_most, "busy again: %zu", r.words);
  r = (struct run){ .words = 2048 * K };
  for (int i = 0; i < 100; i++) collect(&r, &p, 10, true);
  EXPECT(r.changes == 0, "asked for: %zu", r.words);
  for (int i = 0; i < 100; i++) collect(&r, &p, 300, false);
  EXPECT(r.changes == 0, "a third: %zu", r.words);
}

static void refused(void)
{
  size_t before = oh_minor_counters.refused;
  struct program p = { 1, 1e6, 0.1, 1 };
  struct run r = { .words = 64 * K };
  unsigned attempts = 0;
  for (int i = 0; i < 1000; i++) {
    uint64_t start = r.now += 100000;
    oh_minor_begin(&r.policy, start);
    r.now += (uint64_t)p.fixed;
    oh_minor_end(&r.policy, r.now, r.words - 1, r.words, true);
    if (oh_minor_choose(&r.policy, r.words) == r.words) continue;
    oh_minor_changed(&r.policy, r.words, r.words);
    attempts++;
  }
  EXPECT(attempts > 0 && attempts <= 16 && oh_minor_counters.refused == before + attempts, "%u attempts", attempts);
}

static void account(void)
{
  size_t most = oh_settings.minor_most, all = OH_MINOR_ALL * most;
  EXPECT(oh_minor_allows(all) && !oh_minor_allows(all + 1), "nothing is in use");
  oh_minor_account(0, 3 * most);
  EXPECT(oh_minor_allows(all - 3 * most) && !oh_minor_allows(all - 3 * most + 1), "three");
  oh_minor_account(3 * most, most / 2);
  EXPECT(oh_minor_allows(all - most / 2), "a half");
  oh_minor_account(most / 2, 0);
  EXPECT(oh_minor_allows(all), "nothing again");
}

/* A range that is no power of two, and a size outside of it. */
static void bounds(void)
{
  struct oh_settings old = oh_settings;
  oh_settings.minor_least = 10000;
  oh_settings.minor_most = 300001;
  struct run r = run((struct program){ 1, 1e6, 0.1, 1 }, 4096, 1000);
  EXPECT(r.words == 300001, "%zu", r.words);
  r = run((struct program){ 20, 100, 0.001, 1 }, 262144, 1000);
  EXPECT(r.words == 10000, "%zu", r.words);
  r = run((struct program){ 1, 1e6, 0.1, 1 }, 8192 * K, 1000);
  EXPECT(r.words == 8192 * K, "larger than it may be, and asked for: %zu", r.words);
  oh_settings = old;
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  TRY(roots);
  TRY(falling);
  TRY(survivors);
  TRY(quiet);
  TRY(idle);
  TRY(refused);
  TRY(account);
  TRY(bounds);
  return try_end();
}
