/* SPDX-License-Identifier: MIT */
/* The public functions: memory of each kind, reservation ahead, statistics, settings; bad input everywhere. */
#include "base.h"
#include "outheap.h"
#include "block.h"
#include "address_space.h"
#include "settings.h"
#include "pool.h"
#include "stats.h"
#include "table.h"
#include "start.h"
#include "pointer.h"
#include "space.h"
#include "try.h"
#include <sys/resource.h>

static enum outheap_kind const kinds[] = { OUTHEAP_MAJOR, OUTHEAP_VALUES, OUTHEAP_FOREIGN };

static bool is_zero(char *m, size_t bytes)
{
  for (size_t i = 0; i < bytes; i += 512)
    if (m[i] != 0) return false;
  return true;
}

static void memory(void)
{
  for (int k = 0; k < 3; k++) {
    char *m[40];
    for (int round = 0; round < 3; round++) {
      for (int i = 0; i < 40; i++) {
        size_t bytes = 1 + (size_t)i * 12345 % (3 * OH_PAGE);
        m[i] = outheap_allocate(kinds[k], bytes);
        EXPECT(m[i] != NULL && (uintptr_t)m[i] % OH_PAGE == 0 && is_zero(m[i], bytes), "round %d, %d: %p", round, i,
               (void *)m[i]);
        EXPECT(outheap_classify(m[i] + bytes - 1) == kinds[k], "%d", outheap_classify(m[i]));
        EXPECT(oh_pointer_is_markable((uintptr_t)m[i]) == (kinds[k] == OUTHEAP_MAJOR) &&
                 oh_pointer_is_value((uintptr_t)m[i]) == (kinds[k] != OUTHEAP_FOREIGN),
               "marks");
        memset(m[i], 0xa5, bytes);
      }
      for (int i = 0; i < 40; i++) outheap_free(kinds[k], m[i], 1 + (size_t)i * 12345 % (3 * OH_PAGE));
      if (round == 1) outheap_trim();
    }
  }
}

static void refused(void)
{
  char local[64];
  for (int k = -1; k < 9; k++) {
    bool known = k == OUTHEAP_MAJOR || k == OUTHEAP_VALUES || k == OUTHEAP_FOREIGN;
    errno = 0;
    EXPECT(outheap_allocate((enum outheap_kind)k, 0) == NULL && errno == EINVAL, "nothing");
    errno = 0;
    EXPECT(outheap_allocate((enum outheap_kind)k, SIZE_MAX) == NULL && errno == (known ? ENOMEM : EINVAL),
           "everything");
    errno = 0;
    EXPECT(outheap_allocate((enum outheap_kind)k, SIZE_MAX / 2) == NULL && errno == (known ? ENOMEM : EINVAL),
           "half of it");
    outheap_free((enum outheap_kind)k, NULL, 0);
    outheap_free((enum outheap_kind)k, NULL, 8);
    outheap_free((enum outheap_kind)k, local, sizeof local);
    outheap_free((enum outheap_kind)k, (void *)(uintptr_t)(-OH_PAGE), OH_PAGE);
  }
  char *m = outheap_allocate(OUTHEAP_VALUES, OH_PAGE);
  outheap_free(OUTHEAP_MAJOR, m, OH_PAGE);
  outheap_free(OUTHEAP_VALUES, m + 8, OH_PAGE);
  outheap_free(OUTHEAP_VALUES, m, SIZE_MAX);
  outheap_free(OUTHEAP_VALUES, m, 9 * OH_PAGE);
  memset(m, 1, OH_PAGE); /* still there */
  outheap_free(OUTHEAP_VALUES, m, 1);
  outheap_free(OUTHEAP_VALUES, m, 1);
  oh_space_validate();
  EXPECT(outheap_reserve(0) == EINVAL && outheap_reserve(SIZE_MAX) == EINVAL &&
           outheap_reserve(((size_t)1 << OH_ADDRESS_BITS) + 1) == EINVAL,
         "reserve");
  EXPECT(outheap_reserve((size_t)1 << OH_ADDRESS_BITS) == ENOMEM, "all there is");
  oh_reserve_validate();
}

/* What was reserved is taken by all spaces, without a request to the system. */
static void ahead(void)
{
  struct outheap_statistics before, reserved, after;
  outheap_statistics(&before);
  EXPECT(outheap_reserve(12 * OH_CHUNK - 5) == 0, "reserve");
  outheap_statistics(&reserved);
  EXPECT(reserved.reserved_ahead == before.reserved_ahead + 12 * OH_CHUNK &&
           reserved.reserved == before.reserved + 12 * OH_CHUNK,
         "ahead");
  EXPECT(reserved.chunks == before.chunks + 12, "chunks");
  for (int i = 0; i < 3; i++) {
    EXPECT(oh_space_alloc(OH_SPACE_POOLS, OH_CHUNK, false, NULL) != NULL, "pools");
    EXPECT(oh_space_alloc(OH_SPACE_YOUNG, OH_CHUNK, false, NULL) != NULL, "young");
    char *low = oh_space_alloc(OH_SPACE_BLOCKS, OH_CHUNK, false, NULL);
    EXPECT(low != NULL, "blocks");
  }
  outheap_statistics(&after);
  EXPECT(after.reserved == reserved.reserved && after.reservations == reserved.reservations, "no new address space");
  EXPECT(outheap_allocate(OUTHEAP_VALUES, 2 * OH_CHUNK) != NULL, "values");
  EXPECT(after.reserved_ahead == reserved.reserved_ahead - 9 * OH_CHUNK, "%zu", after.reserved_ahead);
  oh_space_validate();
}

static void statistics(void)
{
  struct outheap_statistics s, t;
  outheap_statistics(&s);
  void *pools[200], *block = oh_block_alloc(5 * OH_PAGE);
  for (int i = 0; i < 200; i++) pools[i] = oh_pool_alloc();
  char *young = oh_space_alloc(OH_SPACE_YOUNG, 4 * OH_PAGE, false, NULL);
  EXPECT(block != NULL && young != NULL && oh_space_commit(OH_SPACE_YOUNG, young + OH_PAGE, 8192), "take");
  outheap_statistics(&t);
  EXPECT(t.pools == s.pools + 200 && t.blocks == s.blocks + 1 && t.block_bytes > s.block_bytes + 5 * OH_PAGE, "in use");
  EXPECT(t.young == s.young + OH_PAGE, "%zu", t.young - s.young);
  EXPECT(t.committed <= t.reserved && t.chunks != 0 && t.commits > s.commits, "memory");
  for (int i = 0; i < 200; i++) oh_pool_free(pools[i]);
  oh_block_free(block);
  oh_space_free(OH_SPACE_YOUNG, young, 4 * OH_PAGE);
  outheap_statistics(&t);
  EXPECT(t.pools == s.pools && t.blocks == s.blocks && t.resident_free != 0, "given back");
  outheap_trim();
  outheap_statistics(&t);
  EXPECT(t.resident_free == 0, "%zu resident", t.resident_free);
}

/* --- settings ------------------------------------------------------------------------------------------------------
   */

static struct oh_settings initial;

/* What is printed while the list is read; the settings are then as at first, with the changes. */
static char const *read_list(char const *list)
{
  static char text[4096];
  int both[2], saved = dup(2);
  EXPECT(pipe(both) == 0, "pipe");
  dup2(both[1], 2);
  close(both[1]);
  oh_settings = initial;
  oh_settings_read(list, "OUTHEAP");
  dup2(saved, 2);
  close(saved);
  ssize_t n = read(both[0], text, sizeof text - 1);
  text[n < 0 ? 0 : n] = 0;
  close(both[0]);
  return text;
}

static void settings(void)
{
  struct oh_settings s;
  char const *quiet[] = { NULL, "", ",", ",,,", "thp=off", "warn=0", "reserve=0" };
  for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++) EXPECT(read_list(quiet[i])[0] == 0, "%s", quiet[i]);
  EXPECT(read_list("thp=always,reserve=3G,keep=5M:20%,stats=exit,debug.report=7,debug.stack=4k")[0] == 0, "all");
  s = oh_settings;
  EXPECT(s.thp[OH_SPACE_YOUNG] == OH_SETTINGS_THP_ALWAYS && s.thp[OH_SPACE_POOLS] == OH_SETTINGS_THP_ALWAYS &&
           s.thp[OH_SPACE_BLOCKS] == OH_SETTINGS_THP_ALWAYS,
         "thp");
  EXPECT(s.thp[OH_SPACE_MARKED] == OH_SETTINGS_THP_OFF && s.thp[OH_SPACE_VALUES] == OH_SETTINGS_THP_OFF &&
           s.thp[OH_SPACE_FOREIGN] == OH_SETTINGS_THP_OFF,
         "never");
  EXPECT(s.reserve == (size_t)3 << 30 && s.small.keep == 5 << 20 && s.small.share == 20 && s.small.slack == 20 &&
           memcmp(&s.small, &s.huge, sizeof s.huge) == 0,
         "sizes");
  EXPECT(s.stats && s.report == 7 && s.helper_stack == 4096, "others");
  EXPECT(read_list("stats=HUP+30s,stats.to=fd:7,warn=1,debug.slices=1")[0] == 0, "operation");
  s = oh_settings;
  EXPECT(s.stats_signals == (uint64_t)1 << SIGHUP && s.stats_every == 30000000000 && !s.stats &&
           strcmp(s.stats_to, "fd:7") == 0 && s.warn && s.slices,
         "operation");
  EXPECT(read_list("stats=USR2+1s,stats=USR1+exit+URG")[0] == 0 && oh_settings.stats && oh_settings.stats_every == 0 &&
           oh_settings.stats_signals == ((uint64_t)1 << SIGUSR1 | (uint64_t)1 << SIGURG),
         "several moments");
  EXPECT(read_list("stats=USR2+1s+exit,stats=off")[0] == 0 && !oh_settings.stats && oh_settings.stats_every == 0 &&
           oh_settings.stats_signals == 0, "no statistics");
  EXPECT(!s.thp_asked && read_list("thp=always")[0] == 0 && oh_settings.thp_asked, "huge pages on request");
  EXPECT(!s.steps && read_list("debug.clock=step")[0] == 0 && oh_settings.steps, "driven time");
  EXPECT(read_list("debug.clock=machine")[0] == 0 && !oh_settings.steps, "the machine's");
  EXPECT(strstr(read_list("debug.clock=slow"), "ignored: debug.clock=slow (debug.clock is machine or step)") != NULL &&
           !oh_settings.steps, "no such clock");
  EXPECT(read_list("thp=advise:1T,keep=17")[0] == 0 && oh_settings.thp[OH_SPACE_POOLS] == OH_SETTINGS_THP_ADVISE,
         "from a size on");
  EXPECT(oh_settings.thp_from == (size_t)1 << 40 && oh_settings.huge.keep == 17 &&
           oh_settings.huge.share == initial.huge.share && oh_settings.small.slack == initial.small.slack,
         "units");
  EXPECT(read_list("memory.idle=1s:40ms")[0] == 0 && oh_settings.idle == 1000000000 &&
           oh_settings.idle_pause == 40000000,
         "idle");
  EXPECT(read_list("memory.idle=off")[0] == 0 && oh_settings.idle == 0, "never idle");
  EXPECT(read_list("minor=adaptive")[0] == 0 && oh_settings.minor_adaptive && oh_settings.minor_least == 32768 &&
           oh_settings.minor_most == 8 << 20,
         "adaptive");
  EXPECT(read_list("minor=adaptive:4k-256M")[0] == 0 && oh_settings.minor_adaptive &&
           oh_settings.minor_least == 4096 && oh_settings.minor_most == (size_t)1 << 28,
         "its range");
  EXPECT(read_list("minor=adaptive:5ms")[0] == 0 && oh_settings.pause == 5000000, "a pause");
  EXPECT(read_list("minor=adaptive:8k-1M:500us")[0] == 0 && oh_settings.pause == 500000 &&
           oh_settings.minor_least == 8192 && oh_settings.minor_most == 1 << 20,
         "both");
  EXPECT(read_list("minor=adaptive,minor=fixed")[0] == 0 && !oh_settings.minor_adaptive, "fixed");
  char const *bad[] = { "x",
                        "=",
                        "=1",
                        "thp",
                        "thp=",
                        "thp=On",
                        "reserve=",
                        "reserve=-1",
                        "reserve= 1",
                        "reserve=1KB",
                        "reserve=99999999999999999999",
                        "reserve=99999999999999999",
                        "reserve=20000000T",
                        "keep=1e3",
                        "keep=:5%",
                        "keep=1M:",
                        "keep=1M:5",
                        "keep=1M:101%",
                        "keep=1M:-5%",
                        "thp=off:1M",
                        "thp=advise:",
                        "thp=off always",
                        "stats=1",
                        "stats=FOO",
                        "stats=SEGV",
                        "stats=12",
                        "stats=",
                        "stats=exit+",
                        "stats=exit+often",
                        "stats=USR1+60",
                        "stats.to=",
                        "stats.signal=USR1",
                        "stats.every=60",
                        "debug.faults=on",
                        "opaque=yes",
                        "debug.marking=fast",
                        "warn=2",
                        "debug.slices=yes",
                        "debug.report=+5",
                        "keep=K",
                        "keep=k",
                        "minor=",
                        "minor=Adaptive",
                        "minor=fixed:1M-2M",
                        "minor=adaptive:",
                        "minor=adaptive:1M",
                        "minor=adaptive:-1M",
                        "minor=adaptive:64k-",
                        "minor=adaptive:64k-32k",
                        "minor=adaptive:4095-1M",
                        "minor=adaptive:32k-257M",
                        "minor=adaptive:32k-1M-2M",
                        "minor=-:",
                        "minor=adaptive:8k-1M:",
                        "minor=fixed:5ms",
                        "memory.pause=",
                        "memory.pause=5",
                        "memory.pause=0ms",
                        "memory.pause=-5ms",
                        "memory.pause=5 ms",
                        "memory.pause=5min",
                        "memory.pause=123456789ms",
                        "memory.idle=1s:",
                        "memory.idle=off:1s",
                        "Keep=1",
                        "01234567890123456789012345678901234567890123456789012345678901234567890123456789=0123456789",
                        "%s%n=%s%n" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char list[300];
    snprintf(list, sizeof list, "keep=3M,%s,debug.report=4", bad[i]);
    char const *said = read_list(list);
    if (strcmp(bad[i], "reserve=99999999999999999") == 0) continue; /* a number */
    EXPECT(strncmp(said, "outheap: OUTHEAP: ignored: ", 27) == 0 &&
             strncmp(said + 27, bad[i], strlen(bad[i]) < 79 ? strlen(bad[i]) : 79) == 0,
           "%s: %s", bad[i], said);
    EXPECT(strchr(said, '\n') == said + strlen(said) - 1, "one line: %s", said);
    EXPECT(strcmp(said + strlen(said) - 2, ")\n") == 0, "what is possible: %s", said);
    s = oh_settings;
    EXPECT(s.small.keep == 3 << 20 && s.report == 4, "others: %s", bad[i]);
    s.small = initial.small, s.huge = initial.huge, s.report = initial.report;
    EXPECT(memcmp(&s, &initial, sizeof s) == 0, "changed: %s", bad[i]);
  }
  oh_settings = initial;
}

/* A message says which values there are, or which settings. */
static void choices(void)
{
  static struct { char const *list, *said; } const all[] = {
    { "thp=maybe", "thp=maybe (thp is off, advise, advise:SIZE or always)" },
    { "reserve", "reserve (reserve is a number of bytes, or one with K, M, G or T)" },
    { "keep=1M:5", "keep=1M:5 (keep is a number of bytes, such as 8M, or that and a share, such as 8M:5%)" },
    { "memory.pause=5", "memory.pause=5 (memory.pause is a time from 1us to 9999999s, such as 10ms)" },
    { "memory.idle=10000000s", "memory.idle=10000000s (memory.idle is a time from 1us to 9999999s, such as 2s, or that "
                               "and a pause, such as 2s:30ms, or off)" },
    { "minor=adaptive:1k-1M",
      "minor=adaptive:1k-1M (MIN is too small: the runtime has no minor heap below 4k words)" },
    { "minor=adaptive:1M-1G",
      "minor=adaptive:1M-1G (MAX is too large: the runtime has no minor heap above 256M words)" },
    { "minor=adaptive:2M-1M", "minor=adaptive:2M-1M (MIN is more than MAX)" },
    { "stats=exit+KILL", "stats=exit+KILL (stats is off, exit, USR1, USR2, HUP, URG, WINCH or a time such as 60s, or "
                         "several with + between)" },
    { "stats=18446744073709551615s", "stats=18446744073709551615s (stats is off, exit, " },
    { "limit=18446744073709551615", "limit=18446744073709551615 (limit is a number of bytes from 1M to 131072T, such" },
    { "limit=1", "limit=1 (limit is a number of bytes from 1M to 131072T, such as 2G, a share such as 75%, or" },
    { "stats.to=", "stats.to= (stats.to is a file, or fd:N)" },
    { "stats_to=x", "stats_to=x (the settings are: thp " },
    { "opaque=2", "opaque=2 (opaque is 0 or 1)" },
    { "debug.marking=1", "debug.marking=1 (debug.marking is range or table)" },
    { "debug.faults=1", "debug.faults=1 (debug.faults is off or report)" },
    { "debug.report=all", "debug.report=all (debug.report is a number N: every Nth pointer is printed)" },
    { "thb=off", "thb=off (the settings are: thp hugetlb reserve keep minor memory memory.pause " },
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char const *said = read_list(all[i].list);
    EXPECT(strncmp(said + 27, all[i].said, strlen(all[i].said)) == 0, "%s: %s", all[i].list, said);
  }
  EXPECT(strstr(read_list("minor=x"), "(minor is fixed or adaptive[") != NULL, "minor");
  EXPECT(read_list("debug.faults=off,debug.faults=report")[0] == 0, "read by the library of regions");
  oh_settings = initial;
}

/* What a process with these settings prints from its start to its exit. */
static char const *printed(char const *list, size_t address_space)
{
  static char text[8192];
  int out[2], status;
  size_t length = 0;
  fflush(stdout);
  EXPECT(pipe(out) == 0, "pipe");
  pid_t child = fork();
  if (child == 0) {
    dup2(out[1], STDERR_FILENO);
    setenv("OUTHEAP", list, 1);
    if (address_space != 0) setrlimit(RLIMIT_AS, &(struct rlimit){ address_space, address_space });
    oh_start();
    oh_pointer_is_markable((uintptr_t)text);
    exit(0);
  }
  close(out[1]);
  for (ssize_t n; (n = read(out[0], text + length, sizeof text - 1 - length)) > 0;) length += (size_t)n;
  close(out[0]);
  text[length] = 0;
  EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "child: %x", status);
  return text;
}

static void messages(void)
{
  EXPECT(printed("thp=off", 0)[0] == 0, "no settings, no text");
  char const *said = printed("stats=exit", 0);
  EXPECT(strstr(said, "outheap: pools 0\n") != NULL && strstr(said, "outheap: reserved ") != NULL, "%s", said);
#if OH_TAINT
  said = printed("debug.report=1", 0);
  EXPECT(strstr(said, "outheap: pointer to foreign memory: 0x") == said &&
           strstr(said, "\noutheap: pointers to foreign memory: 1\n") != NULL,
         "%s", said);
#endif
  if (TRY_SANITIZED || OH_ADDRESS_BITS == 57) return; /* which themselves need much address space */
  said = printed("reserve=8G", (size_t)4 << 30);
  EXPECT(strcmp(said, "outheap: OUTHEAP: could not reserve 8589934592 bytes\n") == 0, "%s", said);
}

/* Threads that use everything at once. */
static void *player(void *arg)
{
  uint64_t random = try_seed + (uintptr_t)arg;
  char *m[8] = { 0 };
  enum outheap_kind kind[8] = { 0 };
  for (int step = 0; step < (TRY_SANITIZED ? 1500 : 6000); step++) {
    size_t i = try_below(&random, 8);
    struct outheap_statistics s;
    switch (try_below(&random, 7)) {
      case 0: case 1: case 2:
        if (m[i] != NULL) {
          EXPECT(m[i][5] == (char)(uintptr_t)arg, "contents");
          outheap_free(kind[i], m[i], OH_PAGE);
          m[i] = NULL;
          break;
        }
        kind[i] = kinds[try_below(&random, 3)];
        EXPECT((m[i] = outheap_allocate(kind[i], OH_PAGE)) != NULL && m[i][5] == 0, "allocate");
        m[i][5] = (char)(uintptr_t)arg;
        break;
      case 3:
        if (m[i] == NULL) break;
        EXPECT(outheap_classify(m[i]) == kind[i], "classify");
        if (kind[i] != OUTHEAP_FOREIGN) break;
        EXPECT(outheap_declare_values(m[i] + 64, m[i] + 640) == 0 && outheap_classify(m[i] + 64) == OUTHEAP_VALUES,
               "declare");
        EXPECT(oh_pointer_is_value((uintptr_t)m[i] + 72) && outheap_withdraw_values(m[i] + 64, m[i] + 640) == 0,
               "withdraw");
        break;
      case 4: {
        void *p = oh_pool_alloc(), *b = oh_block_alloc(1 + try_below(&random, 100000));
        EXPECT(p != NULL && b != NULL && oh_pointer_is_markable((uintptr_t)p) && oh_pointer_is_value((uintptr_t)b),
               "heap");
        oh_pool_free(p);
        oh_block_free(b);
        break;
      }
      case 5:
        outheap_statistics(&s);
        EXPECT(s.reserved_ahead <= s.reserved, "statistics");
        struct outheap_memory all;
        outheap_memory(&all);
        EXPECT(all.used != 0 && all.free <= all.used, "%zu of %zu", all.free, all.used);
        break;
      case 6:
        if (try_below(&random, 50) == 0) outheap_trim();
        if (try_below(&random, 200) == 0) EXPECT(outheap_reserve(OH_CHUNK) == 0, "reserve");
        break;
    }
  }
  for (int i = 0; i < 8; i++) outheap_free(kind[i], m[i], OH_PAGE);
  return NULL;
}
static void threads(void) { try_threads(4, player); oh_space_validate(); }

int main(int argc, char **argv)
{
  try_start(argc, argv);
  initial = oh_settings;
  setenv("OUTHEAP", "thp=off", 1);
  TRY(settings);
  TRY(choices);
  TRY(messages);
  oh_start();
  TRY(memory);
  TRY(refused);
  TRY(ahead);
  TRY(statistics);
  TRY(threads);
  return try_end();
}
