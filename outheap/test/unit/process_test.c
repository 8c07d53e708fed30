/* SPDX-License-Identifier: MIT */
/* What depends on the process and the system: limits, forks, places in the address space. */
#include "block.h"
#include "base.h"
#include "os.h"
#include "outheap.h"
#include "page.h"
#include "ranges.h"
#include "address_space.h"
#include "settings.h"
#include "pool.h"
#include "table.h"
#include "start.h"
#include "pointer.h"
#include "space.h"
#include "try_child.h"
#include <sys/resource.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

/* --- limits ------------------------------------------------------------------------------------------------------ */

static void limit(int what, size_t bytes)
{
  struct rlimit l;
  EXPECT(getrlimit(what, &l) == 0, "limit");
  l.rlim_cur = bytes;
  EXPECT(setrlimit(what, &l) == 0, "limit");
}

/* Takes pages of all spaces in turn until there are none; gives all back; does it again. Result: bytes, the first
   time. */
static size_t fill(void)
{
  static char *held[200000];
  size_t first = 0;
  for (int round = 0; round < 3; round++) {
    size_t n = 0, in_a_row = 0;
    for (; n < sizeof held / sizeof *held && in_a_row < OH_SPACES; n++) {
      errno = 0;
      held[n] = oh_space_alloc((enum oh_space_id)(n % OH_SPACES), OH_PAGE, true, NULL);
      EXPECT(held[n] != NULL || errno == ENOMEM, "%d", errno);
      in_a_row = held[n] == NULL ? in_a_row + 1 : 0;
      if (held[n] != NULL) held[n][OH_PAGE - 1] = 1;
    }
    oh_space_validate();
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
      if (held[i] == NULL) continue;
      bytes += OH_PAGE;
      oh_space_free((enum oh_space_id)(i % OH_SPACES), held[i], OH_PAGE);
    }
    if (round == 0) first = bytes;
    EXPECT(bytes >= first, "round %d: %zu, at first %zu", round, bytes, first);
  }
  return first;
}

#define LIMIT (700 * M)
static void address_space(void)
{
  limit(RLIMIT_AS, LIMIT);
  oh_start();
  size_t bytes = fill();
  printf("    %zu MB of %zu\n", bytes / M, LIMIT / M);
  struct outheap_statistics s;
  outheap_statistics(&s);
  EXPECT(bytes > LIMIT / 2 && s.chunks <= 2 * OH_SPACES + s.reserved / OH_CHUNK, "%zu MB, %zu chunks", bytes / M,
         s.chunks);
}
static void address_space_later(void)
{
  oh_start();
  void *p = oh_pool_alloc(), *m = outheap_allocate(OUTHEAP_VALUES, OH_PAGE);
  size_t mine = 0;
  for (int i = 0; i < OH_SPACES; i++) {
    struct oh_space_counters c;
    oh_space_count(i, &c);
    mine += c.reserved;
  }
  limit(RLIMIT_AS, mine + 300 * M);
  EXPECT(p != NULL && m != NULL && fill() > mine / 2, "hardly any");
  EXPECT(outheap_reserve(500 * M + OH_CHUNK) == ENOMEM, "reserve");
}
static void small(void)
{
  limit(RLIMIT_AS, 150 * M);
  oh_start();
  void *p = oh_pool_alloc(), *b = oh_block_alloc(5 * M), *none = oh_block_alloc(400 * M);
  EXPECT(p != NULL && b != NULL && none == NULL && errno == ENOMEM, "%p %p %p", p, b, none);
  memset(b, 1, 5 * M);
  char *young = oh_space_alloc(OH_SPACE_YOUNG, OH_ROUND_UP(32 * M, OH_PAGE), false, NULL); /* less than a chunk */
  EXPECT(young != NULL && oh_space_commit(OH_SPACE_YOUNG, young + OH_PAGE, OH_PAGE), "young");
  oh_block_free(b);
  oh_pool_free(p);
}
/* Memory itself is refused, as with strict accounting. */
static void data(void)
{
  oh_start();
  limit(RLIMIT_DATA, 400 * M);
  size_t bytes = fill();
  printf("    %zu MB of 400\n", bytes / M);
  EXPECT(bytes > 100 * M && oh_space_alloc(OH_SPACE_BLOCKS, 600 * M, true, NULL) == NULL && errno == ENOMEM, "%zu",
         bytes);
}
static size_t locked_kilobytes(void)
{
  FILE *f = fopen("/proc/self/status", "r");
  char line[256];
  size_t kilobytes = 0;
  while (f != NULL && fgets(line, sizeof line, f) != NULL) (void)sscanf(line, "VmLck: %zu", &kilobytes);
  if (f != NULL) fclose(f);
  return kilobytes;
}
/* Locked memory is given back as well, reads as zeroes, and is locked when it is touched again. */
static void locked(void)
{
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return;
  char *m = outheap_allocate(OUTHEAP_VALUES, 3 * OH_PAGE);
  if (m == NULL) return;
  memset(m, 1, 3 * OH_PAGE);
  oh_space_purge(OH_SPACE_VALUES, m, oh_os_page_size());
  EXPECT(m[0] == 0 && m[oh_os_page_size()] == 1, "purged");
  size_t locked = locked_kilobytes();
  EXPECT(try_resident(m, 3 * OH_PAGE) >= 2 * OH_PAGE, "resident before");
  outheap_free(OUTHEAP_VALUES, m, 3 * OH_PAGE);
  EXPECT(outheap_trim() != 0 && try_resident(m, 3 * OH_PAGE) == 0, "given back: %zu", try_resident(m, 3 * OH_PAGE));
  m = outheap_allocate(OUTHEAP_VALUES, 3 * OH_PAGE);
  for (size_t i = 0; i < 3 * OH_PAGE; i++) EXPECT(m[i] == 0, "not zero");
  EXPECT(locked_kilobytes() >= locked, "locked: %zu, before %zu", locked_kilobytes(), locked);
  munlockall();
  memset(m, 1, 3 * OH_PAGE);
  outheap_free(OUTHEAP_VALUES, m, 3 * OH_PAGE);
  EXPECT(outheap_trim() != 0 && try_resident(m, 3 * OH_PAGE) == 0, "trim");
}
static void limits(void)
{
  in_child("keep=4M", locked);
  if (TRY_SANITIZED || OH_ADDRESS_BITS == 57) return; /* which themselves need much */
  in_child("keep=4M", data);
  in_child("keep=4M", address_space);
  in_child("keep=4M", address_space_later);
  in_child("keep=4M", small);
}

/* --- forks ------------------------------------------------------------------------------------------------------- */

#define LARGE (OH_TABLE_ENTRIES > (size_t)1 << 20) /* to go through the whole table takes its time */
static bool stop;
static void *busy(void *arg)
{
  uint64_t random = try_seed + (uintptr_t)arg;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    void *p = oh_pool_alloc(), *b = oh_block_alloc(try_below(&random, 200000)),
         *m = outheap_allocate(OUTHEAP_FOREIGN, OH_PAGE);
    EXPECT(p != NULL && b != NULL && m != NULL && outheap_declare_values(m, (char *)m + 64) == 0, "busy");
    EXPECT(outheap_withdraw_values(m, (char *)m + 64) == 0, "busy");
    oh_pool_free(p), oh_block_free(b), outheap_free(OUTHEAP_FOREIGN, m, OH_PAGE);
    if (try_below(&random, 100) == 0) outheap_trim();
    if (try_below(&random, 100) == 0 && !LARGE) outheap_report(try_below(&random, 2), NULL, NULL);
    oh_pointer_is_markable((uintptr_t)8);
  }
  return NULL;
}
static void forks_busily(void)
{
  pthread_t t[3];
  oh_start();
  for (uintptr_t i = 0; i < 3; i++) pthread_create(&t[i], NULL, busy, (void *)i);
  for (int round = 0; round < (TRY_SANITIZED ? 8 : 12); round++) {
    pid_t child = fork();
    if (child == 0) {
      alarm(600); /* for what hangs, not for a busy machine */
      for (int i = 0; i < 100; i++) {
        void *p = oh_pool_alloc(), *b = oh_block_alloc(100000), *m = outheap_allocate(OUTHEAP_FOREIGN, OH_PAGE);
        EXPECT(p != NULL && b != NULL && m != NULL && outheap_declare_values(m, (char *)m + 64) == 0, "child");
        memset(p, 1, OH_POOL), memset(b, 1, 100000), memset(m, 1, OH_PAGE);
        oh_pool_free(p), oh_block_free(b);
        EXPECT(outheap_withdraw_values(m, (char *)m + 64) == 0, "child");
        outheap_free(OUTHEAP_FOREIGN, m, OH_PAGE);
      }
      if (!LARGE) {
        outheap_report(0, NULL, NULL), outheap_report(1, NULL, NULL);
        EXPECT(!oh_pointer_is_markable(8) && outheap_report(0, NULL, NULL) == OH_TAINT, "report");
      }
      outheap_trim();
      EXPECT(outheap_reserve(OH_CHUNK) == 0, "reserve");
      oh_space_validate(), oh_ranges_validate(), oh_pool_validate(), oh_block_validate();
      _exit(0);
    }
    int status;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "round %d: %x", round, status);
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
}
static void forks(void) { in_child("thp=off,keep=4M", forks_busily); }

/* --- places ------------------------------------------------------------------------------------------------------ */

/* Something lies where the heap would grow. */
static void in_the_way(void)
{
  oh_start();
  for (int i = 0; i < 20; i++) {
    EXPECT(oh_space_alloc(OH_SPACE_POOLS, OH_PAGE, true, NULL) != NULL, "take");
    uintptr_t next = oh_reserve_end(OH_SPACE_POOLS);
    oh_os_reserve_at(next + OH_PAGE, OH_PAGE);
    EXPECT(oh_space_alloc(OH_SPACE_POOLS, OH_CHUNK, false, NULL) != NULL, "around it");
    EXPECT(oh_table_kind(next) == OH_KIND_UNKNOWN || oh_table_kind(next) == OH_KIND_MAJOR, "kind");
  }
}
/* The system chooses, and every other place is tainted. */
#if OH_TAINT
static unsigned chosen;
static void taint(uintptr_t base, size_t bytes)
{
  (void)bytes;
  if (chosen++ % 2 == 0) oh_pointer_is_markable(OH_ROUND_UP(base, OH_CHUNK) + 8);
}
static void anywhere(void)
{
  oh_start();
  oh_os_reserved = taint;
  for (int i = 0; i < 30; i++) {
    size_t bytes = OH_CHUNK * (1 + (unsigned)i % 4);
    char *p = oh_space_alloc(OH_SPACE_BLOCKS, bytes, false, NULL);
    EXPECT(p != NULL, "take");
    for (size_t k = 0; k < bytes; k += OH_CHUNK) EXPECT(oh_table_kind((uintptr_t)p + k) == OH_KIND_MAJOR, "kind");
  }
  oh_reserve_validate();
  EXPECT(chosen > 20, "%u", chosen);
}
#endif
/* A thread whose stack lies far below the first one starts the library. */
static void *start_here(void *unused)
{
  oh_start();
  return unused;
}
static void low_stack(void)
{
  size_t bytes = 4 * M;
  void *low = mmap((void *)((uintptr_t)1 << 28), bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_t attributes;
  pthread_t thread;
  EXPECT(low != MAP_FAILED && pthread_attr_init(&attributes) == 0, "memory");
  EXPECT(pthread_attr_setstack(&attributes, low, bytes) == 0, "stack");
  EXPECT(pthread_create(&thread, &attributes, start_here, NULL) == 0 && pthread_join(thread, NULL) == 0, "thread");
  int here;
  unsigned bits = 64 - (unsigned)__builtin_clzll((uintptr_t)&here);
  if (bits > OH_ADDRESS_BITS) bits = OH_ADDRESS_BITS;
  EXPECT(oh_zone_part_size() == (uintptr_t)1 << (bits - 6), "%zx", oh_zone_part_size());
}

static void places(void)
{
#ifdef __linux__
  if (!TRY_SANITIZED) in_child(NULL, low_stack);
#endif
#if OH_TAINT
  in_child(NULL, anywhere);
#endif
  in_child(NULL, in_the_way);
}

/* --- rights ------------------------------------------------------------------------------------------------------ */

/* A copy of this program that runs as another user than its caller. */
#ifdef __linux__
static char copy[] = "/tmp/outheap-rights-XXXXXX";

static void run_copy(void)
{
  execl(copy, copy, "--with-rights", (char *)NULL);
  _exit(1);
}
static int with_rights(void)
{
  oh_start();
  if (getauxval(AT_SECURE) == 0) fputs("no rights in this folder", stderr);
  else EXPECT(!oh_settings.opaque, "its caller has changed a setting");
  return 0;
}
static void rights(void)
{
  char command[200];
  if (geteuid() != 0 || TRY_SANITIZED) return;
  int file = mkstemp(copy);
  EXPECT(file >= 0 && close(file) == 0, "no file");
  snprintf(command, sizeof command, "cp /proc/%ld/exe %s && chown 1:1 %s && chmod 4755 %s", (long)getpid(), copy, copy,
           copy);
  EXPECT(system(command) == 0, "%s", command);
  char const *said = try_said("opaque=1", run_copy);
  EXPECT(try_times(said, "OUTHEAP is ignored") == 1 || strcmp(said, "no rights in this folder") == 0, "%s", said);
  unlink(copy);
}
#endif

int main(int argc, char **argv)
{
#ifdef __linux__
  if (argc == 2 && strcmp(argv[1], "--with-rights") == 0) return with_rights();
#endif
  try_start(argc, argv);
  TRY(limits);
  TRY(forks);
  TRY(places);
#ifdef __linux__
  TRY(rights);
#endif
  return try_end();
}
