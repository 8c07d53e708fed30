/* SPDX-License-Identifier: MIT */
/* Blocks: random operations against a model, sizes at the edges, threads, failures, fragmentation, what stays
   resident. */
#include "base.h"
#include "block.h"
#include "os.h"
#include "settings.h"
#include "start.h"
#include "try.h"

#define MOST 600

static struct { char *block; size_t bytes; uint64_t mark; } live[MOST];
static size_t lives;

/* A mark at both ends and now and then between; small blocks all over. */
static size_t stride(size_t bytes) { return bytes <= 16384 ? 8 : 4096; }
static void fill(char *block, size_t bytes, uint64_t mark)
{
  if (bytes < 8) return;
  for (size_t i = 0; i + 8 <= bytes; i += stride(bytes)) memcpy(block + i, &mark, 8);
  memcpy(block + bytes - 8, &mark, 8);
}
static void verify(char *block, size_t bytes, uint64_t mark)
{
  if (bytes < 8) return;
  for (size_t i = 0; i + 8 <= bytes - 8; i += stride(bytes))
    EXPECT(memcmp(block + i, &mark, 8) == 0, "block %p of %zu at %zu", (void *)block, bytes, i);
  EXPECT(memcmp(block + bytes - 8, &mark, 8) == 0, "block %p of %zu, its end", (void *)block, bytes);
}

static bool take_one(size_t bytes)
{
  char *p = oh_block_alloc(bytes);
  if (p == NULL) {
    EXPECT(errno == ENOMEM, "%d", errno);
    return false;
  }
  EXPECT((uintptr_t)p % 16 == 0 && oh_block_size(p) >= bytes, "%p: %zu for %zu", (void *)p, oh_block_size(p), bytes);
  for (size_t i = 0; i < lives; i++)
    EXPECT(p + oh_block_size(p) <= live[i].block || p >= live[i].block + oh_block_size(live[i].block), "%p overlaps %p",
           (void *)p, (void *)live[i].block);
  live[lives].block = p;
  live[lives].bytes = oh_block_size(p);
  live[lives].mark = (uintptr_t)p * 31 + bytes;
  fill(p, live[lives].bytes, live[lives].mark);
  lives++;
  return true;
}

static void give_one(size_t i)
{
  EXPECT(oh_block_size(live[i].block) == live[i].bytes, "its size changed");
  verify(live[i].block, live[i].bytes, live[i].mark);
  if (live[i].bytes <= 1 << 20) memset(live[i].block, 0x55, live[i].bytes);
  oh_block_free(live[i].block);
  live[i] = live[--lives];
}

static void check_none(void)
{
  struct oh_block_counters c;
  oh_block_validate();
  oh_block_count(&c);
  EXPECT(c.blocks == 0 && c.bytes == 0, "%zu blocks, %zu bytes", c.blocks, c.bytes);
  oh_block_trim();
  oh_block_validate();
  oh_block_count(&c);
  EXPECT(c.extents == 0 && c.resident_free == 0, "%zu extents, %zu", c.extents, c.resident_free);
}

static void give_all(void)
{
  while (lives > 0) give_one(lives - 1);
  check_none();
}

/* Evenly distributed logarithms; often the very edge of large pages. */
static size_t some_size(uint64_t *state, size_t most)
{
  size_t r = try_below(state, 16), n;
  if (r == 0) return OH_PAGE * (1 + try_below(state, 3)) - 64 + try_below(state, 80);
  if (r == 1) return try_below(state, 64);
  for (n = 64; n < most && try_below(state, 12) != 0;) n += n / 2;
  return n > most ? most : n + try_below(state, n);
}

static void model(void)
{
  uint64_t state = try_seed;
  size_t most = MOST, sizes = OH_PAGE * 8;
  for (int round = 0; round < 20000; round++) {
    if (round % 1000 == 0) {
      most = 1 + try_below(&state, MOST);
      sizes = OH_PAGE >> try_below(&state, 6) << 3;
    }
    if (lives == 0 || (lives < most && try_below(&state, 2) != 0))
      EXPECT(take_one(some_size(&state, sizes)), "no memory");
    else give_one(try_below(&state, lives));
    if (round % 128 == 0) oh_block_validate();
    if (try_below(&state, 256) == 0) oh_block_age();
    if (oh_block_has_old() && try_below(&state, 8) == 0) oh_block_purge_old();
    if (round % 2048 == 2047) {
      oh_block_trim();
      oh_block_validate();
      struct oh_block_counters c;
      oh_block_count(&c);
      EXPECT(c.blocks == lives, "%zu blocks, %zu", c.blocks, lives);
      for (size_t i = 0; i < lives; i++) verify(live[i].block, live[i].bytes, live[i].mark);
    }
  }
  give_all();
}

static void edges(void)
{
  for (size_t n = 0; n < 3000; n++) {
    EXPECT(take_one(n), "no memory");
    if (lives == 500) give_all();
  }
  give_all();
  for (size_t pages = 1; pages <= 40; pages++)
    for (size_t d = 0; d <= 128; d += 8) {
      EXPECT(take_one(OH_PAGE * pages - 64 + d), "no memory");
      if (lives > 3) give_one(0);
      if (d % 32 == 0) oh_block_validate();
    }
  give_all();
  size_t absurd[] = { SIZE_MAX,
                      SIZE_MAX - 8,
                      SIZE_MAX - 64,
                      SIZE_MAX / 2 + 1,
                      SIZE_MAX / 2,
                      OH_ADDRESS_LIMIT,
                      OH_ADDRESS_LIMIT - 1 };
  for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
    errno = 0;
    EXPECT(oh_block_alloc(absurd[i]) == NULL && errno == ENOMEM, "%zx", absurd[i]);
  }
  oh_block_free(NULL);
  check_none();
}

/* Whatever comes and goes, what is needed stays close to what is in use at most. */
static void fragmentation(void)
{
  enum { N = 3000, ROUNDS = 400000 };
  static char *held[N];
  uint64_t state = try_seed;
  size_t in_use = 0, most = 0, needed = 0, limit = OH_PAGE / 32;
  for (int round = 0; round < ROUNDS; round++) {
    size_t i = try_below(&state, N), n = 1024;
    if (held[i] != NULL) in_use -= oh_block_size(held[i]), oh_block_free(held[i]);
    while (n < limit && try_below(&state, 4) != 0) n += n / 2;
    if (round % (ROUNDS / 4) == 0) limit = OH_PAGE / 64 << try_below(&state, 4); /* sizes change */
    EXPECT((held[i] = oh_block_alloc(n + try_below(&state, n))) != NULL, "no memory");
    in_use += oh_block_size(held[i]);
    if (in_use > most) most = in_use;
    if (round % 1000 == 0) {
      struct oh_block_counters c;
      oh_block_count(&c);
      if (c.bytes + c.resident_free > needed) needed = c.bytes + c.resident_free;
    }
  }
  printf("    %.1f MB in use at most, %.1f MB needed (%.3f)\n", (double)most / 1e6, (double)needed / 1e6,
         (double)needed / (double)most);
  EXPECT(needed < most / 2 * 3 + 4 * OH_PAGE, "%zu for %zu", needed, most);
  for (int i = 0; i < N; i++) oh_block_free(held[i]), held[i] = NULL;
  check_none();
}

/* A size that comes again takes the place of the one that went, also when it lies between two classes. */
static void reuse(void)
{
  for (size_t n = 1000; n < OH_PAGE; n += n / 7 + 24) {
    char *fence = oh_block_alloc(n), *p = oh_block_alloc(n), *fence2 = oh_block_alloc(n);
    oh_block_free(p);
    char *q = oh_block_alloc(n);
    EXPECT(p == q, "%p, then %p for %zu", (void *)p, (void *)q, n);
    oh_block_free(fence), oh_block_free(q), oh_block_free(fence2);
  }
  check_none();
}

static void trim(void)
{
  enum { N = 64 };
  char *p[N];
  size_t n = OH_PAGE + OH_PAGE / 2, total = 0;
  /* Large blocks, every 4th stays: what lies between goes back to the system, all but a little at the seams. */
  for (int i = 0; i < N; i++) memset(p[i] = oh_block_alloc(n), 1, n);
  for (int i = 0; i < N; i++)
    if (i % 4 != 0) oh_block_free(p[i]);
  oh_block_trim();
  oh_block_validate();
  for (int i = 0; i < N; i++) total += try_resident(p[i], n);
  struct oh_block_counters c;
  oh_block_count(&c);
  EXPECT(c.blocks == N / 4, "%zu", c.blocks);
  if (!TRY_SANITIZED)
    EXPECT(total <= N / 4 * n + N * 6 * oh_os_page_size(), "%zu resident, %zu in use", total, N / 4 * n);
  EXPECT(c.resident_free <= N * 6 * oh_os_page_size(), "%zu", c.resident_free);
  /* One more of them fits where they were, and reads and writes. */
  memset(p[1] = oh_block_alloc(n), 2, n);
  oh_block_free(p[1]);
  for (int i = 0; i < N; i += 4) {
    for (size_t k = 0; k < n; k += 509) EXPECT(p[i][k] == 1, "%d, %zu", i, k);
    oh_block_free(p[i]);
  }
  check_none();
  total = 0;
  for (int i = 0; i < N; i++) total += try_resident(p[i], n);
  EXPECT(TRY_SANITIZED || total == 0, "%zu", total);
}

static void purge_old(void)
{
  while (oh_block_has_old()) oh_block_purge_old();
}

/* What stays free for two calls of `age` goes back, and no more. */
static void ages(void)
{
  enum { N = 64 };
  char *p[N];
  size_t n = OH_PAGE / 4, total = 0, free_now;
  struct oh_block_counters c;
  struct oh_settings old = oh_settings;
  oh_settings.small.keep = oh_settings.huge.keep = oh_settings.small.share = oh_settings.huge.share = 0;
  oh_block_age(); /* either call may be the one that notes */
  for (int i = 0; i < N; i++) memset(p[i] = oh_block_alloc(n), 1, n);
  for (int i = 0; i < N; i++)
    if (i % 4 != 0) oh_block_free(p[i]);
  purge_old();
  oh_block_count(&c);
  free_now = c.resident_free;
  EXPECT(free_now > N / 2 * n, "%zu", free_now);
  for (int i = 0; i < 3; i++) {
    oh_block_age();
    oh_block_validate();
    purge_old();
    oh_block_validate();
  }
  oh_block_count(&c);
  EXPECT(c.blocks == N / 4, "%zu", c.blocks);
  /* The rest of the last step, which holds whole large pages, is one free block; some system pages are at the seams. */
  EXPECT(c.resident_free <= N * 2 * oh_os_page_size(), "%zu", c.resident_free);
  for (int i = 0; i < N; i++) total += try_resident(p[i], n);
  if (!TRY_SANITIZED)
    EXPECT(total <= N / 4 * n + N * 3 * oh_os_page_size(), "%zu resident, %zu in use", total, N / 4 * n);
  for (int i = 0; i < N; i += 4)
    for (size_t k = 0; k < n; k++) EXPECT(p[i][k] == 1, "%d, %zu", i, k);
  /* What is taken and given again within a cycle, or was noted and is in use, stays as it is. */
  for (int round = 0; round < 6; round++) {
    for (int i = 0; i < N; i++)
      if (i % 4 != 0) memset(p[i] = oh_block_alloc(n), 2, n);
    purge_old();
    for (int i = 0; i < N; i++)
      for (size_t k = 0; k < n; k += 509) EXPECT(p[i][k] == (i % 4 == 0 ? 1 : 2), "%d, %zu", i, k);
    for (int i = 0; i < N; i++)
      if (i % 4 != 0) oh_block_free(p[i]);
    oh_block_age();
    oh_block_validate();
    oh_block_count(&c);
    EXPECT(c.resident_free > N / 2 * n, "%zu", c.resident_free);
  }
  /* As much as the allowance stays. */
  oh_settings.small.keep = oh_settings.huge.keep = 8 * OH_PAGE;
  for (int i = 0; i < 4; i++) {
    oh_block_age();
    purge_old();
  }
  oh_block_count(&c);
  EXPECT(c.resident_free > 6 * OH_PAGE && c.resident_free < 9 * OH_PAGE, "%zu", c.resident_free);
  oh_settings = old;
  for (int i = 0; i < N; i += 4) oh_block_free(p[i]);
  check_none();
}

static void *exchanged[64];

static void *churn(void *number)
{
  uint64_t state = try_seed + (uintptr_t)number;
  for (int i = 0; i < 20000; i++) {
    void **place = &exchanged[try_below(&state, 64)];
    char *p = NULL;
    if (try_below(&state, 2) != 0) {
      size_t n = 64 + some_size(&state, OH_PAGE / 2);
      p = oh_block_alloc(n);
      EXPECT(p != NULL, "no memory");
      fill(p, oh_block_size(p), (uintptr_t)p);
    }
    p = __atomic_exchange_n(place, p, __ATOMIC_ACQ_REL);
    if (p != NULL) {
      verify(p, oh_block_size(p), (uintptr_t)p);
      oh_block_free(p);
    }
    if (i % 4096 == 0) oh_block_trim();
    if (i % 512 == 0) oh_block_age();
    if (oh_block_has_old()) oh_block_purge_old();
    if (i % 2048 == 0) oh_block_validate();
  }
  return NULL;
}

static void threads(void)
{
  for (int round = 0; round < 3; round++) {
    try_threads(4, churn);
    for (int i = 0; i < 64; i++) {
      oh_block_free(exchanged[i]);
      exchanged[i] = NULL;
    }
    check_none();
  }
}

static void forks(void)
{
  int status = 0;
  char *p = oh_block_alloc(5000);
  pid_t child = fork();
  if (child == 0) {
    for (size_t n = 1; n < OH_PAGE * 2; n += n) take_one(n);
    oh_block_free(p);
    give_all();
    _exit(0);
  }
  EXPECT(waitpid(child, &status, 0) == child && status == 0, "child: %d", status);
  oh_block_free(p);
  check_none();
}

#ifdef OH_FAULTS
static void failures(void)
{
  uint64_t state = try_seed;
  long over = 0;
  for (long n = 1; over < 3; n++) {
    bool failed = false;
    oh_os_fail_after = n;
    for (int i = 0; i < 200; i++) {
      if (lives > 20 || (lives > 0 && try_below(&state, 3) == 0)) give_one(try_below(&state, lives));
      else failed |= !take_one(some_size(&state, OH_PAGE * 3));
    }
    oh_block_validate();
    oh_block_trim();
    bool pending = oh_os_fail_after > 0;
    oh_os_fail_after = 0;
    if (pending && !failed) over++;
    give_all();
  }
  /* No memory at all: what is free in any arena still serves. */
  EXPECT(take_one(OH_PAGE / 4), "no memory");
  oh_os_fail_after = -1;
  EXPECT(take_one(OH_PAGE / 4), "there was room");
  EXPECT(!take_one(OH_PAGE * 1000), "there cannot be room");
  oh_os_fail_after = 0;
  give_all();
}
#endif

#if OH_DEBUG
static void twice(void)
{
  char *p = oh_block_alloc(2000), *q = oh_block_alloc(2000);
  oh_block_free(p);
  oh_block_free(p);
  (void)q;
}
static void twice_joined(void)
{
  char *p = oh_block_alloc(2000), *q = oh_block_alloc(2000), *r = oh_block_alloc(2000);
  oh_block_free(p);
  oh_block_free(q);
  oh_block_free(q);
  (void)r;
}
static void foreign(void) { oh_block_free((void *)((uintptr_t)1 << (OH_ADDRESS_BITS - 2))); }
static void inside(void) { oh_block_free((char *)memset(oh_block_alloc(2000), 0, 2000) + 64); }
static void written_over(void)
{
  char *p = oh_block_alloc(2000);
  memset(p - 8, 0x10, 8);
  oh_block_free(p);
}
static void misuse(void)
{
  EXPECT(try_aborts(twice) && try_aborts(twice_joined) && try_aborts(foreign) && try_aborts(inside) &&
           try_aborts(written_over),
         "not detected");
}
#endif

int main(int argc, char **argv)
{
  try_start(argc, argv);
  oh_start();
  TRY(edges);
  TRY(model);
  TRY(reuse);
  TRY(fragmentation);
  TRY(trim);
  TRY(ages);
  TRY(forks);
#if OH_DEBUG
  TRY(misuse);
#endif
#ifdef OH_FAULTS
  TRY(failures);
#endif
  TRY(threads);
  return try_end();
}
