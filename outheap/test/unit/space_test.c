/* SPDX-License-Identifier: MIT */
/* Spaces: random operations against a model, with contents; threads; what is refused. When memory is committed and
   purged, and failures: space_memory_test.c. */
#include "space.h"
#include "os.h"
#include "header.h"
#include "address_space.h"
#include "settings.h"
#include "start.h"
#include "table.h"
#include "try_page.h"

#define BATCH 300
struct extent {
  char *base;
  size_t pages;
  uint64_t mark;
  uint64_t open; /* pages that are accessible; all beyond 64 are not */
};
struct player { uint64_t random; struct extent live[OH_SPACES][BATCH]; size_t lives[OH_SPACES]; bool alone; };

static bool is_open(struct extent const *e, size_t i) { return i < 64 && (e->open >> i & 1); }

static void verify(struct extent const *e)
{
  for (size_t i = 0; i < e->pages; i++)
    if (is_open(e, i)) EXPECT(has(e->base + i * OH_PAGE, e->mark), "page %zu of %p", i, (void *)e->base);
}

static void take(struct player *p, enum oh_space_id id)
{
  if (p->lives[id] == BATCH) return;
  size_t pages = 1 + try_below(&p->random, 4);
  bool commit = try_below(&p->random, 4) != 0, fresh = false;
  switch (try_below(&p->random, 12)) {
    case 0: pages = 1 + try_below(&p->random, 64); break;
    case 1: if (!commit) pages = 1 + try_below(&p->random, 5 * OH_PAGES_PER_CHUNK); break;
  }
  char *base = oh_space_alloc(id, pages * OH_PAGE, commit, &fresh);
  EXPECT(base != NULL && (uintptr_t)base % OH_PAGE == 0, "%p for %zu pages: %d", (void *)base, pages, errno);
  struct extent *e = &p->live[id][p->lives[id]++];
  *e = (struct extent){ base, pages, try_random(&p->random), commit ? ~(uint64_t)0 : 0 };
  for (size_t i = 0; i < pages; i++) {
    char *page = base + i * OH_PAGE;
    enum oh_kind k = oh_table_kind((uintptr_t)page);
    EXPECT(k == oh_spaces_kind(id) || (id == OH_SPACE_FOREIGN && (k == OH_KIND_MIXED || k == OH_KIND_REPORTED)),
           "kind %d in %d", k, id);
    if (!commit) continue;
    if (fresh) EXPECT(is_zero(page), "not fresh");
    stamp(page, e->mark);
  }
  for (int s = 0; s < OH_SPACES && p->alone; s++)
    for (size_t i = 0; i < p->lives[s]; i++) {
      struct extent *o = &p->live[s][i];
      EXPECT(o == e || o->base + o->pages * OH_PAGE <= base || base + pages * OH_PAGE <= o->base, "overlap");
    }
}

static void give(struct player *p, enum oh_space_id id, bool whole)
{
  if (p->lives[id] == 0) return;
  size_t n = try_below(&p->random, p->lives[id]);
  struct extent *e = &p->live[id][n];
  verify(e);
  size_t first = whole ? 0 : try_below(&p->random, e->pages),
         count = whole ? e->pages : 1 + try_below(&p->random, e->pages - first);
  oh_space_free(id, e->base + first * OH_PAGE, count * OH_PAGE);
  struct extent rest = *e, head = *e;
  head.pages = first;
  rest.base += (first + count) * OH_PAGE;
  rest.pages -= first + count;
  rest.open = first + count < 64 ? rest.open >> (first + count) : 0;
  *e = p->live[id][--p->lives[id]];
  if (head.pages != 0) p->live[id][p->lives[id]++] = head;
  if (rest.pages == 0) return;
  if (p->lives[id] == BATCH) oh_space_free(id, rest.base, rest.pages * OH_PAGE);
  else p->live[id][p->lives[id]++] = rest;
}

/* Commits or discards a part, cut at system pages. */
static void part(struct player *p, enum oh_space_id id)
{
  if (p->lives[id] == 0) return;
  struct extent *e = &p->live[id][try_below(&p->random, p->lives[id])];
  size_t grain = oh_os_page_size(), all = (e->pages < 64 ? e->pages : 64) * OH_PAGE / grain,
         from = try_below(&p->random, all), n = 1 + try_below(&p->random, all - from);
  size_t first = from * grain / OH_PAGE, last = ((from + n) * grain - 1) / OH_PAGE;
  if (try_below(&p->random, 2)) {
    EXPECT(oh_space_commit(id, e->base + from * grain, n * grain), "commit");
    for (size_t i = first; i <= last; i++) {
      if (!is_open(e, i)) stamp(e->base + i * OH_PAGE, e->mark);
      e->open |= (uint64_t)1 << i;
    }
  } else {
    verify(e);
    oh_space_purge(id, e->base + from * grain, n * grain);
    for (size_t i = first; i <= last; i++) {
      if (!is_open(e, i)) continue;
      char *page = e->base + i * OH_PAGE;
      if (from * grain <= i * OH_PAGE && (i + 1) * OH_PAGE <= (from + n) * grain)
        EXPECT(is_zero(page), "not discarded");
      stamp(page, e->mark);
    }
  }
}

static void count(struct player *p, enum oh_space_id id)
{
  struct oh_space_counters c;
  oh_space_count(id, &c);
  size_t used = 0;
  for (size_t i = 0; i < p->lives[id]; i++) used += p->live[id][i].pages * OH_PAGE;
  if (p->alone) {
    EXPECT(c.used == used, "%zu for %zu", c.used, used);
    size_t share = used / 100 * oh_settings.small.slack, least = oh_settings.small.keep;
    size_t most = least > share ? least : share;
    EXPECT(OH_SBRK || c.dirty <= most + OH_PAGE, "%zu dirty", c.dirty);
  }
  EXPECT(c.used <= c.reserved && c.committed <= c.reserved && c.dirty <= c.committed && c.tainted == 0, "counters");
}

static void play(struct player *p, int steps)
{
  for (int step = 0; step < steps; step++) {
    enum oh_space_id id = (enum oh_space_id)try_below(&p->random, OH_SPACES);
    switch (try_below(&p->random, 16)) {
      case 0: case 1: case 2: case 3: case 4: case 5: take(p, id); break;
      case 6: case 7: case 8: case 9: give(p, id, true); break;
      case 10: give(p, id, false); break;
      case 11: case 12: part(p, id); break;
      case 13: count(p, id); break;
      case 14:
        if (try_below(&p->random, 20) == 0) {
          struct oh_space_counters c = { 0 };
          size_t bytes = oh_space_trim(id);
          if (p->alone) oh_space_count(id, &c);
          EXPECT((OH_SBRK || c.dirty == 0) && bytes % OH_PAGE == 0, "%zu dirty after trim", c.dirty);
        }
        break;
      case 15:
        break;
    }
    if (step % 512 == 0) oh_space_validate();
  }
}

static void finish(struct player *p)
{
  for (int id = 0; id < OH_SPACES; id++)
    while (p->lives[id] != 0) give(p, id, true);
}

static void model(void)
{
  static struct player p;
  p = (struct player){ .random = try_seed, .alone = true };
  play(&p, TRY_SANITIZED || OH_DEBUG ? 5000 : 15000);
  finish(&p);
  for (int id = 0; id < OH_SPACES; id++) {
    struct oh_space_counters c;
    oh_space_trim(id);
    oh_space_count(id, &c);
    EXPECT(c.used == 0 && (OH_SBRK || c.dirty == 0), "used %zu, dirty %zu", c.used, c.dirty);
  }
  oh_space_validate();
}

static void *player(void *arg)
{
  struct player *p = calloc(1, sizeof *p);
  p->random = try_seed + (uintptr_t)arg + 1;
  play(p, TRY_SANITIZED || OH_DEBUG ? 1500 : 10000);
  finish(p);
  free(p);
  return NULL;
}
static void threads(void) { try_threads(4, player); oh_space_validate(); }

#ifdef OH_FAULTS
/* With strict accounting free memory is not committed any more; it can be had again. */
static void strict(void)
{
  struct oh_space_counters before, full, after;
  /* Enough that more than what is asked for would be committed otherwise. */
  char *large = oh_space_alloc(OH_SPACE_VALUES, 8 * OH_PAGES_PER_CHUNK / 7 * OH_PAGE, true, NULL);
  EXPECT(large != NULL, "memory");
  oh_space_trim(OH_SPACE_VALUES);
  oh_space_count(OH_SPACE_VALUES, &before);
  oh_os_strict = true;
  for (int round = 0; round < 3; round++) {
    char *p = oh_space_alloc(OH_SPACE_VALUES, 40 * OH_PAGE, true, NULL);
    EXPECT(p != NULL, "memory");
    memset(p, 1, 40 * OH_PAGE);
    oh_space_count(OH_SPACE_VALUES, &full);
    oh_space_free(OH_SPACE_VALUES, p + 10 * OH_PAGE, 20 * OH_PAGE);
    oh_space_trim(OH_SPACE_VALUES);
    oh_space_count(OH_SPACE_VALUES, &after);
    EXPECT(after.committed + 20 * OH_PAGE <= full.committed, "%zu, then %zu", full.committed, after.committed);
    uintptr_t word;
    EXPECT(!oh_peek((uintptr_t)p + 10 * OH_PAGE, &word) && !oh_peek((uintptr_t)p + 30 * OH_PAGE - 8, &word) &&
             p[10 * OH_PAGE - 1] == 1 && p[30 * OH_PAGE] == 1, "inaccessible");
    bool fresh;
    char *q = oh_space_alloc(OH_SPACE_VALUES, 20 * OH_PAGE, true, &fresh);
    EXPECT(q != NULL, "again");
    for (size_t i = 0; fresh && i < 20 * OH_PAGE; i += 64) EXPECT(q[i] == 0, "not zero");
    memset(q, 2, 20 * OH_PAGE);
    oh_space_free(OH_SPACE_VALUES, q, 20 * OH_PAGE);
    oh_space_free(OH_SPACE_VALUES, p, 10 * OH_PAGE);
    oh_space_free(OH_SPACE_VALUES, p + 30 * OH_PAGE, 10 * OH_PAGE);
    oh_space_trim(OH_SPACE_VALUES);
    oh_space_count(OH_SPACE_VALUES, &after);
    EXPECT(after.dirty == 0 && after.committed <= before.committed, "%zu, before %zu", after.committed,
           before.committed);
    oh_space_validate();
  }
  oh_os_fail_after = 1; /* what cannot be uncommitted is purged */
  char *p = oh_space_alloc(OH_SPACE_VALUES, OH_PAGE, true, NULL);
  oh_os_fail_after = 0;
  if (p == NULL) p = oh_space_alloc(OH_SPACE_VALUES, OH_PAGE, true, NULL);
  oh_space_free(OH_SPACE_VALUES, p, OH_PAGE);
  oh_os_fail_after = 1;
  oh_space_trim(OH_SPACE_VALUES);
  oh_os_fail_after = 0;
  oh_space_validate();
  oh_space_count(OH_SPACE_VALUES, &after);
  EXPECT(after.dirty == 0, "%zu", after.dirty);
  oh_os_strict = false;
  oh_space_free(OH_SPACE_VALUES, large, 8 * OH_PAGES_PER_CHUNK / 7 * OH_PAGE);
}
#endif

static void refused(void)
{
  struct {
    enum oh_space_id id;
    size_t bytes;
  } bad[] = { { OH_SPACE_POOLS, 0 }, { OH_SPACE_POOLS, 1 }, { OH_SPACE_BLOCKS, OH_PAGE + 4096 } };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    errno = 0;
    EXPECT(oh_space_alloc(bad[i].id, bad[i].bytes, true, NULL) == NULL && errno == EINVAL, "%zu", bad[i].bytes);
  }
  size_t large[] = { (size_t)1 << (OH_ADDRESS_BITS - 1), OH_ADDRESS_LIMIT, SIZE_MAX / 4 + 1,
                     (size_t)0 - OH_PAGE };
  for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
    errno = 0;
    EXPECT(oh_space_alloc(OH_SPACE_BLOCKS, large[i], true, NULL) == NULL && errno == ENOMEM, "%zx", large[i]);
  }
  char local[64];
  EXPECT(!oh_space_free_checked(OH_SPACE_POOLS, local, OH_PAGE) &&
           !oh_space_free_checked(OH_SPACE_POOLS, NULL, OH_PAGE),
         "not ours");
  EXPECT(!oh_space_free_checked(OH_SPACE_POOLS, (void *)(UINTPTR_MAX - OH_PAGE + 1), 2 * OH_PAGE), "around the end");
  char *p = oh_space_alloc(OH_SPACE_POOLS, 2 * OH_PAGE, true, NULL);
  EXPECT(!oh_space_free_checked(OH_SPACE_BLOCKS, p, OH_PAGE) && !oh_space_free_checked(OH_SPACE_POOLS, p + 8, OH_PAGE),
         "another space");
  EXPECT(!oh_space_free_checked(OH_SPACE_POOLS, p, 2 * OH_PAGE + 8) &&
           oh_space_free_checked(OH_SPACE_POOLS, p, OH_PAGE),
         "part");
  EXPECT(!oh_space_free_checked(OH_SPACE_POOLS, p, 2 * OH_PAGE) &&
           oh_space_free_checked(OH_SPACE_POOLS, p + OH_PAGE, OH_PAGE),
         "again");
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  try_small_allowance();
  oh_start();
  TRY(model);
#ifdef OH_FAULTS
  TRY(strict);
#endif
  TRY(refused);
  TRY(threads);
  return try_end();
}
