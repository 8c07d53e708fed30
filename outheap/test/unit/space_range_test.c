/* SPDX-License-Identifier: MIT */
/* Ranges: nothing is reserved before it is committed, parts are reserved once, what was given back is used again. */
#include "os.h"
#include "address_space.h"
#include "space.h"
#include "start.h"
#include "table.h"
#include "try_page.h"
#include <sys/mman.h>
#include <sys/resource.h>

#define YOUNG OH_SPACE_YOUNG
static size_t large; /* bytes; not of one size with narrow address spaces */

static size_t reserved(void)
{
  struct oh_space_counters c;
  oh_space_count(YOUNG, &c);
  return c.reserved;
}

static size_t committed(void)
{
  struct oh_space_counters c;
  oh_space_count(YOUNG, &c);
  return c.committed;
}

static char *take(size_t bytes)
{
  char *p = oh_space_take_range(YOUNG, bytes);
  EXPECT(p != NULL && (uintptr_t)p % OH_CHUNK == 0, "no range of %zu: %d", bytes, errno);
  return p;
}

static void parts(void)
{
  if (!oh_zone_usable()) return;
  size_t before = reserved();
  char *p = take(large);
  EXPECT(reserved() == before, "%zu are reserved", reserved() - before);
  for (size_t i = 0; i < large; i += OH_CHUNK) EXPECT(oh_table_kind((uintptr_t)p + i) == OH_KIND_YOUNG, "kind");
  oh_space_purge(YOUNG, p + 3 * OH_PAGE, OH_PAGE / 2); /* as the runtime does in a new domain */
  EXPECT(reserved() == before, "purged and reserved");
  /* Parts that share pages, and one at the very end. */
  char *at[] = { p + 5 * OH_PAGE, p + 5 * OH_PAGE + OH_PAGE / 2, p + 7 * OH_PAGE, p + 4 * OH_PAGE + OH_PAGE / 2,
                 p + large - OH_PAGE };
  size_t bytes[] = { OH_PAGE / 2, OH_PAGE, OH_PAGE, 3 * OH_PAGE, OH_PAGE };
  for (size_t i = 0; i < 5; i++) {
    EXPECT(oh_space_commit(YOUNG, at[i], bytes[i]), "part %zu: %d", i, errno);
    memset(at[i], 1, bytes[i]);
    oh_space_validate();
  }
  EXPECT(reserved() == before + 5 * OH_PAGE, "%zu pages are reserved", (reserved() - before) / OH_PAGE);
  EXPECT(oh_space_commit(YOUNG, at[0], bytes[0]) && reserved() == before + 5 * OH_PAGE, "again");
  oh_space_purge(YOUNG, at[3], bytes[3]);
  EXPECT(is_zero(p + 6 * OH_PAGE), "purged");
  EXPECT(at[4][0] == 1, "another part was purged");
  size_t young = committed();
  EXPECT(oh_space_give_range(YOUNG, p) && committed() == young - 5 * OH_PAGE, "what is committed: %zu", committed());
  EXPECT(!oh_space_give_range(YOUNG, p) && !oh_space_give_range(YOUNG, p + OH_CHUNK), "given twice");
  oh_space_validate();
  /* The smallest that is large enough is used again, with what is reserved. */
  char *q = take(2 * large), *r = take(large / 2);
  EXPECT(r == p && (q >= p + large || q + 2 * large <= p), "%p, %p, %p", (void *)p, (void *)q, (void *)r);
  EXPECT(oh_space_commit(YOUNG, r + 5 * OH_PAGE, OH_PAGE) && reserved() == before + 5 * OH_PAGE, "reserved twice");
  EXPECT(is_zero(r + 5 * OH_PAGE), "what was committed is left");
  EXPECT(oh_space_give_range(YOUNG, q) && oh_space_give_range(YOUNG, r), "give");
  oh_space_validate();
}

static void taken(void)
{
  if (!oh_zone_usable()) return;
  char *p = take(4 * OH_CHUNK);
  void *other = mmap(p + OH_CHUNK, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  errno = 0;
  EXPECT(!oh_space_commit(YOUNG, p + OH_CHUNK, OH_PAGE) && errno == ENOMEM, "over a mapping of somebody's: %d", errno);
  EXPECT(oh_space_commit(YOUNG, p, OH_CHUNK), "beside it");
  EXPECT(munmap(other, 4096) == 0 && oh_space_commit(YOUNG, p + OH_CHUNK, OH_PAGE), "after it");
  oh_space_validate();
  EXPECT(oh_space_give_range(YOUNG, p), "give");
  /* A range is not placed where something is mapped. */
  char *q = take(2 * large);
  char *next = q + OH_ROUND_UP(2 * large, OH_CHUNK);
  other = mmap(next, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  char *r = take(3 * large);
  EXPECT(r > next || r + 3 * large <= next, "%p, over %p", (void *)r, (void *)next);
  EXPECT(oh_space_give_range(YOUNG, q) && oh_space_give_range(YOUNG, r) && munmap(other, 4096) == 0, "give");
}

static size_t address_space(void)
{
  size_t pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  EXPECT(f != NULL && fscanf(f, "%zu", &pages) == 1, "no /proc");
  fclose(f);
  return pages * oh_os_page_size();
}

static void limited(void)
{
  if (!oh_zone_usable() || TRY_SANITIZED) return;
  struct rlimit l;
  EXPECT(getrlimit(RLIMIT_AS, &l) == 0, "limit");
  rlim_t before = l.rlim_cur;
  size_t bytes = OH_ROUND_UP((size_t)64 << 20, OH_PAGE);
  char *p = take(4 * large); /* larger than all before, so nothing of it is reserved */
  l.rlim_cur = address_space() + ((rlim_t)32 << 20);
  EXPECT(setrlimit(RLIMIT_AS, &l) == 0, "limit");
  char *q = take(5 * large);
  errno = 0;
  EXPECT(!oh_space_commit(YOUNG, p, bytes) && errno == ENOMEM, "beyond the limit: %d", errno);
  l.rlim_cur = before;
  EXPECT(setrlimit(RLIMIT_AS, &l) == 0 && oh_space_commit(YOUNG, p, bytes), "without limit");
  oh_space_validate();
  EXPECT(oh_space_give_range(YOUNG, p) && oh_space_give_range(YOUNG, q), "give");
}

static void refused(void)
{
  errno = 0;
  EXPECT(oh_zone_usable() || (oh_space_take_range(YOUNG, OH_PAGE) == NULL && errno == ENOMEM), "a range without zone");
  errno = 0;
  EXPECT(oh_space_take_range(YOUNG, 0) == NULL && errno == EINVAL, "nothing");
  errno = 0;
  EXPECT(oh_space_take_range(YOUNG, OH_PAGE + 1) == NULL && errno == EINVAL, "not whole pages");
  errno = 0;
  EXPECT(oh_space_take_range(YOUNG, (size_t)1 << (OH_ADDRESS_BITS - 1)) == NULL && errno == ENOMEM, "too large");
  char *p = oh_space_alloc(YOUNG, OH_PAGE, true, NULL);
  EXPECT(!oh_space_give_range(YOUNG, p), "not a range");
  oh_space_free(YOUNG, p, OH_PAGE);
}

#ifdef OH_FAULTS
static void failures(void)
{
  if (!oh_zone_usable()) return;
  for (long n = 1; n < 12; n++) {
    oh_os_fail_after = n;
    char *p = oh_space_take_range(YOUNG, large + (size_t)n * OH_CHUNK);
    bool done = p != NULL && oh_space_commit(YOUNG, p + OH_PAGE, 3 * OH_PAGE);
    long left = oh_os_fail_after;
    oh_os_fail_after = 0;
    EXPECT(done || left == 0, "failed without a failure");
    oh_space_validate();
    if (p == NULL) continue;
    EXPECT(oh_space_commit(YOUNG, p + OH_PAGE, 3 * OH_PAGE), "after failure %ld", n);
    memset(p + OH_PAGE, 1, 3 * OH_PAGE);
    oh_os_fail_after = n;
    EXPECT(oh_space_give_range(YOUNG, p), "give");
    oh_os_fail_after = 0;
    oh_space_validate();
  }
}
#endif

static void *player(void *arg)
{
  if (!oh_zone_usable()) return NULL;
  uint64_t random = (uintptr_t)arg + try_seed;
  for (int i = 0; i < 40; i++) {
    size_t bytes = (1 + try_below(&random, 6)) * OH_CHUNK;
    char *p = take(bytes);
    for (int k = 0; k < 10; k++) {
      size_t at = try_below(&random, bytes / OH_PAGE) * OH_PAGE;
      EXPECT(oh_space_commit(YOUNG, p + at, OH_PAGE), "%d", errno);
      p[at] = 1;
    }
    EXPECT(oh_space_give_range(YOUNG, p), "give");
  }
  return NULL;
}

static void threads(void)
{
  try_threads(4, player);
  oh_space_validate();
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  oh_start();
  large = 200 * OH_CHUNK;
  if (large > oh_zone_part_size() / 8) large = OH_ROUND_DOWN(oh_zone_part_size() / 8, OH_CHUNK);
  TRY(parts);
  TRY(taken);
  TRY(limited);
  TRY(refused);
#ifdef OH_FAULTS
  TRY(failures);
#endif
  TRY(threads);
  return try_end();
}
