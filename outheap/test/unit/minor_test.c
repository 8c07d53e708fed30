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
  size_t cached;   /* words that the processor's caches hold; 0: any size */
  double beyond;   /* what the mutator takes, beyond that */
  size_t phase;    /* words that it allocates at the same pace, about; 0: all */
  double promoted; /* the share of what it allocates, with the smallest heap; `falls` holds for this too */
  double marking;  /* nanoseconds of the major collector's work for each promoted word */
  unsigned stores; /* so many thousandths of the heap are allocated when the remembered set is full; 0: never */
};

/* The share of what is allocated that is promoted, when survivors take so many nanoseconds for each allocated word. */
static double of_words(double survival) { return survival / 20; }

/* Without caches and phases. */
static struct program simple(double mutator, double fixed, double survival, double falls)
{
  return (struct program){
    .mutator = mutator, .fixed = fixed, .survival = survival, .falls = falls, .promoted = of_words(survival)
  };
}

struct run {
  struct oh_minor policy;
  size_t words;
  uint64_t now;
  uint64_t random;
  double pace; /* of this phase */
  unsigned changes, largest_at; /* collections until the size first was the largest; 0: never */
  double allocated;             /* words */
  double due, longest;          /* nanoseconds of the major collector's work, and of a pause */
};

static double falling_by(struct program const *p, size_t words)
{
  double left = 1;
  for (size_t w = oh_settings.minor_least; w < words; w *= 2) left *= p->falls;
  return left;
}
static double of_survival(struct program const *p, size_t words) { return p->survival * falling_by(p, words); }

/* From half to twice as fast; 1.25 on average. */
static double pace(struct run *r, struct program const *p)
{
  if (p->phase == 0) return 1;
  if (r->pace == 0 || try_below(&r->random, p->phase) < r->words)
    r->pace = 0.5 + (double)try_below(&r->random, 1501) / 1000;
  return r->pace;
}

static double of_mutator(struct program const *p, size_t words)
{
  return p->mutator * (p->cached != 0 && words > p->cached ? p->beyond : 1);
}

/* One collection, with `part` thousandths of the heap allocated. */
static void collect(struct run *r, struct program const *p, unsigned part, bool alone)
{
  size_t allocated = r->words / 1000 * part;
  double now = pace(r, p);
  r->allocated += (double)allocated;
  r->now += 1000 + (uint64_t)(now * of_mutator(p, r->words) * (double)allocated);
  if (r->due > 0) { /* a slice does what is due, in the middle of the next heap */
    r->now += (uint64_t)r->due;
    r->longest = r->due > r->longest ? r->due : r->longest;
    oh_minor_slice(&r->policy, r->words, (uint64_t)r->due);
  }
  oh_minor_begin(&r->policy, r->now);
  double took = p->fixed + now * of_survival(p, r->words) * (double)allocated;
  r->now += (uint64_t)took;
  r->longest = took > r->longest ? took : r->longest;
  size_t promoted = (size_t)(p->promoted * falling_by(p, r->words) * (double)allocated);
  r->due = p->marking * (double)promoted;
  struct oh_minor_collection c = {
    .words = r->words, .allocated = allocated, .promoted = promoted, .major = promoted,
    .remembered = p->stores != 0, .alone = alone, .used = r->now
  };
  oh_minor_end(&r->policy, &c);
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
    collect(&r, &p, p.stores != 0 ? p.stores : 999, true);
    if (r.largest_at == 0 && r.words == oh_settings.minor_most) r.largest_at = i;
  }
  return r;
}

/* A large fixed part, as of a deep stack: each doubling halves the cost. */
static void roots(void)
{
  struct run r = run(simple(1, 1e6, 0.1, 1), 32 * K, 1000);
  EXPECT(r.words == oh_settings.minor_most, "%zu words", r.words);
  EXPECT(r.largest_at <= 75, "after %u collections", r.largest_at);
}

/* What lives for a while dies in a larger heap. It grows until too little time is left to gain. */
static void falling(void)
{
  struct run r = run(simple(5, 5000, 1, 0.6), 32 * K, 5000);
  EXPECT(r.words == 512 * K || r.words == 1024 * K, "%zu", r.words);
  EXPECT(r.changes <= 250, "%u changes", r.changes);
}

/* All survives in any heap: it does not stay larger than is easy, and trials become rare. */
static void survivors(void)
{
  struct program p = simple(2, 0, 5, 1);
  struct run r = run(p, 256 * K, 1000);
  unsigned first = r.changes, larger = 0;
  for (int i = 0; i < 9000; i++) {
    collect(&r, &p, 999, true);
    larger += r.words > OH_MINOR_EASY;
  }
  EXPECT(first > 0 && first <= 150, "%u changes", first);
  EXPECT(larger < 1000 && r.changes - first <= 300, "%u times larger, %u changes", larger, r.changes - first);
  EXPECT(r.words <= 2 * OH_MINOR_EASY, "%zu", r.words);
  /* It is judged anew when the program changes: soon enough after thousands of collections. */
  struct program q = simple(1, 1e6, 0.1, 1);
  unsigned n = 0;
  for (; n < 1200 && r.words < oh_settings.minor_most; n++) collect(&r, &q, 999, true);
  EXPECT(r.words == oh_settings.minor_most, "%zu after %u", r.words, n);
}

/* The time for each word that a program allocates, with this size for ever. */
static double fixed(struct program const *p, size_t words)
{
  return of_mutator(p, words) + (1000 + p->fixed) / (double)words + of_survival(p, words);
}

/* Whatever it costs to find out: hardly more time than with the best of fixed sizes, for programs whose mutator is
   slower beyond the caches, or is not, and that work in phases. */
static void best(void)
{
  uint64_t random = try_seed;
  for (int i = 0; i < 100; i++) {
    struct program p = {
      .mutator = 1 + (double)try_below(&random, 40) / 10, .fixed = (double)try_below(&random, 1000000),
      .survival = (double)try_below(&random, 100) / 50, .falls = 0.6 + (double)try_below(&random, 41) / 100,
      .cached = 1024 * K << try_below(&random, 3), .beyond = 1 + (double)try_below(&random, 31) / 100,
      .phase = 10240 * K * try_below(&random, 2)
    };
    p.promoted = of_words(p.survival);
    double least = 1e9, before = 1e9;
    bool rose = false, valley = true;
    for (size_t words = 256 * K; words <= oh_settings.minor_most; words *= 2) {
      double cost = fixed(&p, words);
      valley = valley && !(rose && cost < before);
      rose = rose || cost > 0.98 * before;
      before = cost;
      least = cost < least ? cost : least;
    }
    if (!valley) continue; /* what lies behind a hill, or a plain, is not found */
    struct run r = { .words = 256 * K, .random = random };
    while (r.allocated < 8e9) collect(&r, &p, 999, true);
    double ratio = (double)r.now / r.allocated / least / (p.phase == 0 ? 1 : 1.25);
    EXPECT(ratio < (p.phase == 0 ? 1.05 : 1.25), "%g: mutator %g fixed %g survival %g falls %g cached %zuk beyond %g "
           "phase %zuk", ratio, p.mutator, p.fixed, p.survival, p.falls, p.cached / K, p.beyond, p.phase / K);
  }
}

/* Stores into old blocks fill the remembered set, an eighth of the heap in blocks: these collections count. */
static void stores(void)
{
  struct program p = simple(3, 1e5, 4, 0.8);
  p.stores = 250;
  struct run r = run(p, 256 * K, 2000);
  EXPECT(r.words == oh_settings.minor_most, "%zu", r.words);
}

/* What dies at once runs best in the caches: no memory is taken beyond the first size that is slower. */
static void bursts(void)
{
  struct program p = simple(1.5, 30000, 0.01, 1);
  p.cached = 256 * K;
  p.beyond = 1.3;
  size_t largest = 0;
  struct run r = { .words = 256 * K };
  for (int i = 0; i < 20000; i++) {
    collect(&r, &p, 999, true);
    largest = r.words > largest ? r.words : largest;
  }
  EXPECT(largest <= 512 * K, "%zu", largest);
}

/* What is promoted costs work later, in whatever window: the larger heap gets the credit for promoting less. */
static void marking(void)
{
  struct program p = simple(2, 1000, 0.5, 0.7);
  p.promoted = 0.5;
  p.marking = 6;
  struct run r = run(p, 256 * K, 3000);
  EXPECT(r.words >= 4096 * K, "%zu", r.words);
  EXPECT(r.changes <= 250, "%u changes", r.changes);
}

/* A limit for pauses: those of collections, and of slices; but not where a smaller heap would not help. */
static void pauses(void)
{
  struct oh_settings old = oh_settings;
  struct program p = simple(0.5, 1000, 6, 0.95);
  p.cached = 16384 * K;
  struct run r = run(p, 256 * K, 3000);
  EXPECT(r.words > 1024 * K, "without a limit: %zu", r.words);
  for (int what = 0; what < 3; what++) {
    oh_settings.pause = 5000000;
    if (what == 1) { /* slices */
      p.survival = 1;
      p.promoted = 1;
      p.marking = 5;
    }
    r = run(p, what == 2 ? 4096 * K : 256 * K, 400);
    EXPECT(what == 2 || r.longest < 5.1e6, "%d: a pause of %g", what, r.longest);
    r.longest = 0;
    for (int i = 0; i < 2000; i++) collect(&r, &p, 999, true);
    EXPECT(r.longest < 5.1e6, "%d: a pause of %g", what, r.longest);
    EXPECT(r.words >= 256 * K, "%d: %zu", what, r.words);
  }
  p = simple(1, 8e6, 0.1, 1); /* a deep stack */
  r = run(p, 256 * K, 3000);
  EXPECT(r.words == oh_settings.minor_most, "a stack: %zu", r.words);
  oh_settings = old;
}

/* Hardly any time goes into collections: down to the least. And with any program the size settles. */
static void quiet(void)
{
  struct run r = run(simple(20, 100, 0.001, 1), 4096 * K, 3000);
  EXPECT(r.words == oh_settings.minor_least, "%zu", r.words);
  uint64_t random = try_seed;
  for (int i = 0; i < 200; i++) {
    struct program p = simple(0.5 + (double)try_below(&random, 100) / 10, (double)try_below(&random, 1000000),
                              (double)try_below(&random, 100) / 20, 0.5 + (double)try_below(&random, 51) / 100);
    struct run s = run(p, 32 * K << try_below(&random, 8), 20000);
    EXPECT(s.changes <= 600, "%u changes of %g %g %g %g", s.changes, p.mutator, p.fixed, p.survival, p.falls);
  }
}

/* Others collect: a quarter each time, down to the least; not when this domain is alone, where such a collection was
   asked for, nor when it allocates. */
static void idle(void)
{
  struct program p = simple(1, 1000, 1, 1);
  struct run r = { .words = 2048 * K, .policy.wait = 100 };
  for (int i = 0; i < 9; i++) collect(&r, &p, 10, false);
  EXPECT(r.words == 512 * K, "%zu", r.words);
  for (int i = 0; i < 30; i++) collect(&r, &p, 0, false);
  EXPECT(r.words == oh_settings.minor_least && r.changes == 3, "%zu, %u", r.words, r.changes);
  struct program q = simple(1, 1e6, 0.1, 1);
  for (int i = 0; i < 80; i++) collect(&r, &q, 999, false);
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
  struct program p = simple(1, 1e6, 0.1, 1);
  struct run r = { .words = 64 * K };
  unsigned attempts = 0;
  for (int i = 0; i < 1000; i++) {
    uint64_t start = r.now += 100000;
    oh_minor_begin(&r.policy, start);
    r.now += (uint64_t)p.fixed;
    struct oh_minor_collection c = { .words = r.words, .allocated = r.words - 1, .alone = true, .used = r.now };
    oh_minor_end(&r.policy, &c);
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
  struct run r = run(simple(1, 1e6, 0.1, 1), 4096, 1000);
  EXPECT(r.words == 300001, "%zu", r.words);
  r = run(simple(20, 100, 0.001, 1), 262144, 1000);
  EXPECT(r.words == 10000, "%zu", r.words);
  r = run(simple(1, 1e6, 0.1, 1), 8192 * K, 1000);
  EXPECT(r.words == 8192 * K, "larger than it may be, and asked for: %zu", r.words);
  oh_settings = old;
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  TRY(roots);
  TRY(falling);
  TRY(survivors);
  TRY(best);
  TRY(stores);
  TRY(bursts);
  TRY(marking);
  TRY(pauses);
  TRY(quiet);
  TRY(idle);
  TRY(refused);
  TRY(account);
  TRY(bounds);
  return try_end();
}
