/* SPDX-License-Identifier: MIT */
/* Sets of extents: random operations against an array of bits. */
#include "extents.h"
#include "os.h"
#include "try.h"

#define UNITS 512
#define UNIT ((size_t)1 << 20)
#define BASE ((uintptr_t)3 << 30)

static struct oh_extents set;
static bool member[UNITS];

static uintptr_t at(size_t i) { return BASE + i * UNIT; }

/* The maximal run of members that begins at i, or 0. */
static size_t run_at(size_t i)
{
  size_t n = 0;
  if (!member[i] || (i != 0 && member[i - 1])) return 0;
  while (i + n < UNITS && member[i + n]) n++;
  return n;
}

static void same(struct oh_extents_node const *e, size_t i)
{
  if (i == UNITS) EXPECT(e == NULL, "extent at %zx", (size_t)e->base);
  else
    EXPECT(e != NULL && e->base == at(i) && e->bytes == run_at(i) * UNIT, "run %zu of %zu: %zx %zx", i, run_at(i),
           e ? (size_t)e->base : 0, e ? e->bytes : 0);
}

static void compare(uint64_t *random)
{
  size_t count = 0, bytes = 0, want = 1 + try_below(random, 40), best = UNITS, below = UNITS, above = UNITS,
         here = try_below(random, UNITS);
  for (size_t i = 0; i < UNITS; i++) {
    size_t n = run_at(i);
    if (n == 0) continue;
    count++;
    bytes += n * UNIT;
    if (n >= want && (best == UNITS || n < run_at(best))) best = i;
    if (i <= here) below = i;
    if (i >= here && above == UNITS) above = i;
  }
  EXPECT(set.count == count && set.bytes == bytes, "%zu extents for %zu", set.count, count);
  same(oh_extents_best(&set, want * UNIT - (try_below(random, 2) ? 0 : try_below(random, UNIT))), best);
  same(oh_extents_below(&set, at(here) + try_below(random, UNIT)), below);
  same(oh_extents_above(&set, at(here) - try_below(random, UNIT)), above);
  size_t length = 1 + try_below(random, UNITS - here);
  bool any = false;
  for (size_t i = here; i < here + length; i++) any = any || member[i];
  EXPECT(oh_extents_overlap(&set, at(here), length * UNIT) == any, "meet %zu + %zu", here, length);
  oh_extents_validate(&set);
}

static void model(void)
{
  uint64_t random = try_seed;
  EXPECT(oh_extents_supply(&set, UNITS / 2 + 1), "supply");
  oh_extents_promise(&set, UNITS / 2 + 1);
  for (int step = 0; step < 60000; step++) {
    size_t i = try_below(&random, UNITS), n = 1 + try_below(&random, try_below(&random, 8) == 0 ? UNITS / 4 : 4);
    if (i + n > UNITS) n = UNITS - i;
    bool in = true, out = true;
    for (size_t k = i; k < i + n; k++) in = in && member[k], out = out && !member[k];
    if (out) oh_extents_add(&set, at(i), n * UNIT);
    else if (in) oh_extents_remove(&set, oh_extents_below(&set, at(i)), at(i), n * UNIT);
    else continue;
    for (size_t k = i; k < i + n; k++) member[k] = out;
    if (step % 16 == 0) compare(&random);
  }
}

/* As many as were promised, in the worst case: every other unit. */
static void worst(void)
{
  static struct oh_extents s;
  for (size_t round = 0; round < 20; round++) {
    EXPECT(oh_extents_supply(&s, UNITS / 2), "supply");
    oh_extents_promise(&s, UNITS / 2);
    for (size_t i = 0; i < UNITS; i += 2) oh_extents_add(&s, at(i + round * UNITS), UNIT);
    oh_extents_validate(&s);
  }
  for (struct oh_extents_node *e; (e = oh_extents_best(&s, 1)) != NULL;) oh_extents_remove(&s, e, e->base, e->bytes);
  EXPECT(s.count == 0 && s.bytes == 0, "%zu", s.count);
  oh_extents_validate(&s);
}

/* Depth: with 2^17 extents in order a path is short. */
static size_t depth(struct oh_extents_node const *e, int order)
{
  if (e == NULL) return 0;
  size_t low = depth(e->low[order], order), high = depth(e->high[order], order);
  return 1 + (low > high ? low : high);
}
static void balance(void)
{
  static struct oh_extents s;
  size_t n = (size_t)1 << 17;
  EXPECT(oh_extents_supply(&s, n), "supply");
  oh_extents_promise(&s, n);
  for (size_t i = 0; i < n; i++) oh_extents_add(&s, BASE + 2 * i * UNIT, UNIT);
  EXPECT(depth(s.root[OH_EXTENTS_BY_ADDRESS], OH_EXTENTS_BY_ADDRESS) < 70 &&
           depth(s.root[OH_EXTENTS_BY_SIZE], OH_EXTENTS_BY_SIZE) < 70,
         "depth %zu", depth(s.root[0], 0));
}

static void failure(void)
{
  static struct oh_extents s;
  oh_os_fail_after = -1;
  EXPECT(!oh_extents_supply(&s, 100000), "no memory");
  EXPECT(!oh_extents_supply(&s, SIZE_MAX / 2), "too many");
  oh_os_fail_after = 0;
  EXPECT(oh_extents_supply(&s, 100000), "memory again");
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  TRY(model);
  TRY(worst);
  TRY(balance);
  TRY(failure);
  return try_end();
}
