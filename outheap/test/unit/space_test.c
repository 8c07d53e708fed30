/* SPDX-License-Identifier: MIT */
/* Spaces: random operations against a model, with contents; threads; tainting beside reservations; failures. */
#include "space.h"
#include "os.h"
#include "reserve.h"
#include "settings.h"
#include "start.h"
#include "table.h"
#include "try.h"
#include "zone.h"

#define BATCH 300
struct extent {
  char *base;
  size_t pages;
  uint64_t mark;
  uint64_t open; /* pages that are accessible; all beyond 64 are not */
};
struct player { uint64_t random; struct extent live[OH_SPACES][BATCH]; size_t lives[OH_SPACES]; bool alone; };

static bool is_open(struct extent const *e, size_t i) { return i < 64 && (e->open >> i & 1); }

/* Some words of a page, which depend on where it lies. */
static void stamp(char *page, uint64_t mark)
{
  for (size_t i = 0; i < OH_PAGE; i += OH_PAGE / 2) memcpy(page + i, (uint64_t[]){ mark + (uintptr_t)page + i }, 8);
}
static bool has(char *page, uint64_t mark)
{
  for (size_t i = 0; i < OH_PAGE; i += OH_PAGE / 2)
    if (memcmp(page + i, (uint64_t[]){ mark + (uintptr_t)page + i }, 8) != 0) return false;
  return true;
}
static bool is_zero(char *page)
{
  for (size_t i = 0; i < OH_PAGE; i += OH_PAGE / 4)
    if (memcmp(page + i, (uint64_t[]){ 0 }, 8) != 0) return false;
  return true;
}

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
    size_t share = used / 100 * oh_settings.slack, most = oh_settings.keep > share ? oh_settings.keep : share;
    EXPECT(c.dirty <= most + OH_PAGE, "%zu dirty", c.dirty);
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
          EXPECT(c.dirty == 0 && bytes % OH_PAGE == 0, "%zu dirty after trim", c.dirty);
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
    EXPECT(c.used == 0 && c.dirty == 0, "used %zu, dirty %zu", c.used, c.dirty);
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
  size_t large[] = { (size_t)1 << (OH_ADDRESS_BITS - 1), (size_t)1 << OH_ADDRESS_BITS, (size_t)1 << 62,
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

/* Growth continues where the space ends, and counts what is free there. */
static void contiguous(void)
{
  struct oh_space_counters c;
  oh_start();
  if (!oh_zone_usable()) return;
  char *p = oh_space_alloc(OH_SPACE_YOUNG, OH_CHUNK / 2, false, NULL),
       *q = oh_space_alloc(OH_SPACE_YOUNG, OH_CHUNK + OH_CHUNK / 2, false, NULL);
  oh_space_count(OH_SPACE_YOUNG, &c);
  EXPECT(p != NULL && q == p + OH_CHUNK / 2 && c.reserved == 2 * OH_CHUNK && c.reservations == 2, "%p %p %zx",
         (void *)p, (void *)q, c.reserved);
  oh_space_free(OH_SPACE_YOUNG, p, OH_CHUNK / 2);
  oh_space_free(OH_SPACE_YOUNG, q, OH_CHUNK + OH_CHUNK / 2);
}

static size_t dirty_pages(void)
{
  struct oh_space_counters c;
  oh_space_count(OH_SPACE_MARKED, &c);
  return c.dirty / OH_PAGE;
}
static size_t discards(void)
{
  struct oh_space_counters c;
  oh_space_count(OH_SPACE_MARKED, &c);
  return c.purges;
}
static void take_pages(char **p, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    EXPECT((p[i] = oh_space_alloc(OH_SPACE_MARKED, OH_PAGE, true, NULL)) != NULL, "take");
    stamp(p[i], 1);
  }
}
static void give_pages(char **p, size_t n)
{
  for (size_t i = 0; i < n; i++) oh_space_free(OH_SPACE_MARKED, p[i], OH_PAGE);
}

/* Free memory grows up to what is in use, or the allowance if that is more, and falls to three quarters of it, the
   highest addresses first. */
static void hysteresis(void)
{
  size_t keep = oh_settings.keep / OH_PAGE, n = 6 * keep;
  char *p[400];
  EXPECT(n <= 400, "%zu pages", n);
  oh_space_trim(OH_SPACE_MARKED);
  take_pages(p, n);
  size_t expected = 0, cuts = 0;
  for (size_t i = 0; i < n; i++) {
    oh_space_free(OH_SPACE_MARKED, p[i], OH_PAGE);
    size_t most = (n - i - 1) * OH_PAGE / 100 * oh_settings.slack;
    if (most < oh_settings.keep) most = oh_settings.keep;
    if (++expected * OH_PAGE > most) {
      expected -= (expected * OH_PAGE - (most - most / 4) + OH_PAGE - 1) / OH_PAGE;
      EXPECT(p[i] < p[0] || is_zero(p[i]), "lower addresses first");
      cuts++;
    }
    EXPECT(dirty_pages() == expected, "%zu pages given: %zu dirty, expected %zu", i + 1, dirty_pages(), expected);
  }
  EXPECT(cuts >= 3 && expected <= keep, "%zu cuts", cuts);
}

/* What turns over stays; what has not been needed for an epoch goes back, but for the allowance. */
static void epochs(void)
{
  size_t keep = oh_settings.keep / OH_PAGE, base = 8 * keep, turn = 3 * keep;
  char *p[200], *q[100];
  EXPECT(base <= 200 && turn <= 100, "%zu pages", base);
  oh_space_trim(OH_SPACE_MARKED);
  take_pages(p, base);
  take_pages(q, turn);
  for (size_t round = 0, before = 0; round < 20; round++) {
    give_pages(q, turn);
    if (round == 0) before = discards();
    take_pages(q, turn);
    EXPECT(discards() == before && dirty_pages() == 0, "round %zu: given back and taken again", round);
  }
  give_pages(q, turn);
  EXPECT(dirty_pages() == turn, "%zu", dirty_pages());
  /* Two epochs at most, one page at a time: the first may have begun before. */
  for (size_t i = 0; i < 2 * (base + 1); i++) {
    take_pages(q, 1);
    give_pages(q, 1);
  }
  EXPECT(dirty_pages() <= keep + 1, "%zu pages are kept that nobody needed", dirty_pages());
  give_pages(p, base);
}

/* When nothing can be made accessible any more, what is accessible and free is found, though it is not the best fit. */
static void last_resort(void)
{
  size_t sizes[] = { 2, 1, 4, 1 };
  char *p[4];
  for (int i = 0; i < 4; i++)
    EXPECT((p[i] = oh_space_alloc(OH_SPACE_VALUES, sizes[i] * OH_PAGE, i != 0, NULL)) != NULL, "take");
  oh_space_free(OH_SPACE_VALUES, p[0], 2 * OH_PAGE);
  oh_space_free(OH_SPACE_VALUES, p[2], 4 * OH_PAGE);
  oh_os_fail_after = -1;
  char *q = oh_space_alloc(OH_SPACE_VALUES, 2 * OH_PAGE, true, NULL),
       *none = oh_space_alloc(OH_SPACE_VALUES, 3 * OH_CHUNK, true, NULL);
  oh_os_fail_after = 0;
  EXPECT(q == p[2] && none == NULL, "%p", (void *)q);
  oh_space_free(OH_SPACE_VALUES, q, 2 * OH_PAGE);
  oh_space_free(OH_SPACE_VALUES, p[1], OH_PAGE);
  oh_space_free(OH_SPACE_VALUES, p[3], OH_PAGE);
}

/* One after the other, every request to the system fails; then all. */
static bool scenario(void)
{
  bool complete = true;
  char *held[OH_SPACES][6] = { 0 };
  size_t pages[6] = { 1, 3, 2, OH_PAGES_PER_CHUNK, 1, 2 * OH_PAGES_PER_CHUNK + 1 };
  for (int id = 0; id < OH_SPACES; id++)
    for (int i = 0; i < 6; i++) {
      errno = 0;
      held[id][i] = oh_space_alloc(id, pages[i] * OH_PAGE, i != 3, NULL);
      EXPECT(held[id][i] != NULL || errno == ENOMEM, "%d", errno);
      complete = complete && held[id][i] != NULL;
      if (held[id][i] != NULL && i != 3) stamp(held[id][i], 7);
    }
  complete = oh_reserve_ahead(2 * OH_CHUNK) == 0 && complete;
  for (int id = 0; id < OH_SPACES; id++) {
    if (held[id][3] != NULL && oh_space_commit(id, held[id][3], 2 * OH_PAGE)) {
      stamp(held[id][3], 7);
      oh_space_purge(id, held[id][3], OH_PAGE);
      EXPECT(is_zero(held[id][3]), "purged");
      stamp(held[id][3], 7);
    } else complete = false;
    for (int i = 0; i < 6; i++) {
      if (held[id][i] == NULL) continue;
      EXPECT(i == 3 || has(held[id][i], 7), "contents");
      oh_space_free(id, held[id][i], pages[i] * OH_PAGE);
    }
    oh_space_trim(id);
  }
  return complete;
}

static void failures(void)
{
  long n = -1;
  for (;; n++) {
    if (n == 0) continue;
    pid_t child = fork(); /* so that also the very first requests fail */
    if (child == 0) {
      oh_os_fail_after = n;
      oh_start();
      bool complete = scenario(), reached = oh_os_fail_after <= 0;
      oh_os_fail_after = 0;
      oh_space_validate();
      EXPECT(scenario(), "not well again after %ld", n);
      oh_space_validate();
      if (!reached && !complete) _exit(3);
      _exit(reached ? 0 : 2);
    }
    int status;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
             (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2),
           "n = %ld: %x", n, status);
    if (WEXITSTATUS(status) == 2) break;
  }
  printf("    %ld requests\n", n);
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  setenv("OUTHEAP", OH_PAGE_LOG < 20 ? "thp=off,keep=1M" : "thp=off,keep=16M", 1);
  TRY(failures); /* first: nothing has begun yet */
  oh_start();
  TRY(contiguous);
  TRY(hysteresis);
  TRY(epochs);
  TRY(last_resort);
  TRY(model);
  TRY(refused);
  TRY(threads);
  return try_end();
}
