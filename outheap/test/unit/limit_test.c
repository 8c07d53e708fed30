/* SPDX-License-Identifier: MIT */
/* The soft limit on memory, beside a system that a folder of files pretends. */
#include "limit.h"
#include "clock.h"
#include "pool.h"
#include "proc.h"
#include "settings.h"
#include "try.h"
#include "try_child.h"
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>

#define MS ((uint64_t)1000000)

static char root[64];

/* Makes a file, and the folders that it is in. */
static void put(char const *name, char const *format, ...)
{
  char path[512];
  snprintf(path, sizeof path, "%s%s", root, name);
  for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
    *p = 0;
    mkdir(path, 0700);
  }
  FILE *file = fopen(path, "w");
  EXPECT(file != NULL, "%s", path);
  va_list args;
  va_start(args, format);
  vfprintf(file, format, args);
  va_end(args);
  fclose(file);
}

static void use(size_t bytes)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  put("/proc/self/statm", "%zu %zu 100 1 0 1 0\n", 2 * bytes / page, bytes / page + 100);
}

static void begin(void)
{
  strcpy(root, "/tmp/limit-test-XXXXXX");
  EXPECT(mkdtemp(root) != NULL, "no folder");
  oh_proc_system = root;
  oh_limit_bytes = 0;
  oh_settings.limit = (struct oh_settings_limit){ 0 };
  use(10 * M);
}

static void end(void)
{
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s", root);
  EXPECT(system(command) == 0, "%s", command);
  oh_proc_system = "";
}

static size_t limit_of(char const *setting)
{
  oh_limit_bytes = 0;
  oh_settings.limit.kind = OH_SETTINGS_LIMIT_NONE;
  oh_settings_read(setting, "OUTHEAP");
  oh_limit_start();
  return oh_limit_bytes;
}

static void quiet(void) { EXPECT(freopen("/dev/null", "w", stderr) != NULL, "no /dev/null"); }

/* --- which limit -------------------------------------------------------------------------------------------------- */

static void settings(void)
{
  begin();
  quiet();
  EXPECT(limit_of("limit=200M") == 200 * M, "bytes: %zu", oh_limit_bytes);
  EXPECT(limit_of("limit=1M") == M, "the least");
  EXPECT(limit_of("limit=16T") == (size_t)16 << 40, "much");
  EXPECT(limit_of("limit=131072T") == (size_t)1 << 57, "the most");
  static char const *const wrong[] = {
    "limit=", "limit=0", "limit=1023k", "limit=-1", "limit=%", "limit=0%", "limit=101%", "limit=1M%", "limit=5 %",
    "limit=cgroups", "limit=99999999999999999999", "limit=20000000T", "limit= 2G", "limit=2GB",
    "limit=18446744073709551615", "limit=4611686018427387904", "limit=8388608T", "limit=131073T"
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) EXPECT(limit_of(wrong[i]) == 0, "%s", wrong[i]);
  size_t pages = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE), half = limit_of("limit=50%");
  EXPECT(half > pages / 2 - 100 && half <= pages / 2, "%zu of %zu", half, pages);
  EXPECT(limit_of("limit=100%") <= pages && limit_of("limit=1%") >= pages / 100 - 100, "all, and little");
  put("/proc/self/statm", "nothing");
  EXPECT(limit_of("limit=200M") == 0, "what is used is not known");
  end();
}

static void groups(void)
{
  begin();
  quiet();
  EXPECT(limit_of("limit=cgroup") == 0, "no groups");
  put("/proc/self/cgroup", "0::/\n");
  EXPECT(limit_of("limit=cgroup") == 0, "no files");
  put("/sys/fs/cgroup/memory.max", "max\n");
  EXPECT(limit_of("limit=cgroup") == 0, "no limit");
  put("/sys/fs/cgroup/memory.max", "%zu\n", 400 * M);
  EXPECT(limit_of("limit=cgroup") == 380 * M, "that of a container: %zu", oh_limit_bytes);
  EXPECT(limit_of("limit=50%") == 400 * M / 100 * 50, "a share of it: %zu", oh_limit_bytes);
  EXPECT(limit_of("limit=900M") == 900 * M, "bytes do not ask");
  put("/sys/fs/cgroup/memory.max", "max\n");
  put("/sys/fs/cgroup/memory.high", "%zu\n", 200 * M);
  EXPECT(limit_of("limit=cgroup") == 190 * M, "the soft one: %zu", oh_limit_bytes);
  put("/proc/self/cgroup", "0::/a.slice/b:c/d\n");
  EXPECT(limit_of("limit=cgroup") == 190 * M, "of a group around it: %zu", oh_limit_bytes);
  put("/sys/fs/cgroup/a.slice/memory.max", "%zu\n", 100 * M);
  put("/sys/fs/cgroup/a.slice/b:c/memory.max", "max\n");
  put("/sys/fs/cgroup/a.slice/b:c/d/memory.max", "%zu\n", 300 * M);
  EXPECT(limit_of("limit=cgroup") == 95 * M, "the least: %zu", oh_limit_bytes);
  put("/sys/fs/cgroup/a.slice/b:c/d/memory.high", "%zu\n", 20 * M);
  EXPECT(limit_of("limit=cgroup") == 19 * M, "its own: %zu", oh_limit_bytes);
  put("/sys/fs/cgroup/a.slice/b:c/d/memory.high", "0\n");
  EXPECT(limit_of("limit=cgroup") == 0, "zero");
  end();
}

static void old_groups(void)
{
  begin();
  quiet();
  put("/proc/self/cgroup", "12:cpu,cpuacct:/x\n9:memory:/docker/abc\n1:name=systemd:/user\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT(limit_of("limit=cgroup") == 0, "no limit");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "%zu\n", 60 * M);
  EXPECT(limit_of("limit=cgroup") == 57 * M, "mounted as the root: %zu", oh_limit_bytes);
  put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "%zu\n", 40 * M);
  EXPECT(limit_of("limit=cgroup") == 38 * M, "its own: %zu", oh_limit_bytes);
  put("/proc/self/cgroup", "9:memory\n::\n\nnothing\n7:memory:relative\n");
  EXPECT(limit_of("limit=cgroup") == 0, "lines that are none");
  char path[3000];
  memset(path, 'x', sizeof path);
  path[sizeof path - 1] = 0;
  put("/proc/self/cgroup", "0::/%s\n", path);
  put("/sys/fs/cgroup/memory.max", "%zu\n", 100 * M);
  EXPECT(limit_of("limit=cgroup") == 95 * M, "a long path, around which there is one: %zu", oh_limit_bytes);
  put("/proc/self/cgroup", "7:cpu:/%s\n6:pids:/%s\n5:memory_other:/\n4:memory:/docker/abc\n", path, path);
  EXPECT(limit_of("limit=cgroup") == 38 * M, "the line comes late, behind a name like it: %zu", oh_limit_bytes);
  end();
}

/* --- the floor ---------------------------------------------------------------------------------------------------- */

static size_t floor_of(char const *setting)
{
  oh_settings.floor = oh_settings.floor_percent = 0;
  limit_of(setting);
  return oh_settings.floor;
}

static void floors(void)
{
  begin();
  quiet();
  EXPECT(floor_of("memory.floor=64M") == 64 * M && floor_of("memory.floor=3") == 3, "bytes: %zu", oh_settings.floor);
  EXPECT(floor_of("memory.floor=5%,memory.floor=0") == 0, "the last one counts");
  static char const *const wrong[] = {
    "memory.floor=", "memory.floor=0%", "memory.floor=101%", "memory.floor=-1", "memory.floor=auto2", "memory.floor=%"
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) EXPECT(floor_of(wrong[i]) == 0, "%s", wrong[i]);
  size_t pages = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  EXPECT(floor_of("memory.floor=50%") == pages / 100 * 50, "of all, if nothing is known: %zu", oh_settings.floor);
  put("/proc/meminfo", "MemTotal:       24576000 kB\nMemFree:          100000 kB\nMemAvailable:    1024000 kB\n");
  EXPECT(floor_of("memory.floor=10%") == 100 * M, "of what is left: %zu", oh_settings.floor);
  EXPECT(floor_of("memory.floor=auto") == 60 * M, "6 %%: %zu", oh_settings.floor);
  put("/proc/self/cgroup", "0::/a\n");
  put("/sys/fs/cgroup/a/memory.max", "%zu\n", 500 * M);
  EXPECT(floor_of("memory.floor=auto") == 30 * M, "of what the group may have: %zu", oh_settings.floor);
  EXPECT(floor_of("limit=200M,memory.floor=10%") == 20 * M, "of the limit: %zu", oh_settings.floor);
  EXPECT(floor_of("limit=2000M,memory.floor=10%") == 50 * M, "which may be more: %zu", oh_settings.floor);
  put("/sys/fs/cgroup/a/memory.max", "max\n");
  put("/proc/meminfo", "MemAvailable:   99999999 kB\n");
  EXPECT(floor_of("memory.floor=auto") == 512 * M, "enough: %zu", oh_settings.floor);
  EXPECT(floor_of("memory.floor=10%") > 9000 * M, "what was asked for: %zu", oh_settings.floor);
  put("/proc/meminfo", "MemAvailable: none\n");
  EXPECT(floor_of("memory.floor=10%") == pages / 100 * 10, "it does not say: %zu", oh_settings.floor);
  oh_settings.floor = oh_settings.floor_percent = 0;
  end();
}

/* --- what is due -------------------------------------------------------------------------------------------------- */

static uint64_t now = 1000000 * MS;

/* In a slice a while later, when so much is used. */
static double due(size_t used, size_t allocated, size_t free)
{
  use(used);
  now += 5 * MS;
  return oh_limit_due(0, allocated, free, now);
}

static void pace(void)
{
  begin();
  limit_of("limit=256M");
  use(100 * M);
  oh_limit_cycle(90 * M, 0, now);
  EXPECT(due(100 * M, M, 0) == 0, "far from it");
  double a = due(140 * M, M, 0);
  a = due(140 * M, M, 0);
  double b = due(200 * M, M, 0);
  b = due(200 * M, M, 0);
  double c = due(248 * M, M, 0);
  c = due(248 * M, M, 0);
  EXPECT(a > 1.0 / 116 && a < 1.5 / 116, "%f", a);
  EXPECT(b > 1.0 / 56 && b < 1.5 / 56 && c > 2 * b, "%f %f", b, c);
  EXPECT(due(300 * M, M, 0) <= 0.125, "never too much");
  EXPECT(due(300 * M, M, 0) > 0.1, "but much");
  /* What is free in pools is room. */
  due(240 * M, M, 40 * M);
  double d = due(240 * M, M, 40 * M);
  EXPECT(d > 1.0 / 56 && d < 1.5 / 56, "%f", d);
  /* Another domain's, too, until a cycle ends and all is known. */
  oh_limit_due(1, 0, 0, now);
  oh_limit_due(1, 0, 60 * M, now);
  d = due(240 * M, M, 40 * M);
  EXPECT(d > 1.0 / 116 && d < 1.5 / 116, "%f", d);
  oh_limit_cycle(100 * M, 0, now);
  d = due(240 * M, M, 40 * M);
  EXPECT(d > 1.0 / 16 && d < 1.5 / 16, "%f", d);
  end();
}

/* Memory that is not the heap's counts as if it had been allocated there. */
static void others(void)
{
  begin();
  limit_of("limit=256M");
  oh_limit_cycle(0, 0, now);
  due(150 * M, 0, 0);
  due(150 * M, 0, 0);
  EXPECT(due(150 * M, 0, 0) == 0, "nothing was allocated");
  double share = due(156 * M, 0, 0);
  EXPECT(share > 6.0 / 100 && share < 9.0 / 100, "%f", share);
  EXPECT(due(156 * M, 0, 0) == 0, "nothing more");
  share = due(160 * M, 4 * M, 0);
  EXPECT(share > 4.0 / 96 && share < 6.0 / 96, "once: %f", share);
  end();
}

/* What is free in pools, but of other sizes, is of no use: the process grows all the same. */
static void growth(void)
{
  begin();
  limit_of("limit=256M");
  oh_limit_cycle(60 * M, 0, now);
  due(200 * M, 0, 0);
  due(200 * M, 0, 140 * M);
  double share = due(200 * M, 4 * M, 140 * M);
  EXPECT(share > 4.0 / 200 && share < 6.0 / 190, "there is room: %f", share);
  share = due(204 * M, 4 * M, 140 * M);
  EXPECT(share > 4.0 / 52 && share < 6.0 / 52, "it is not used: %f", share);
  end();
}

/* The descriptor that the limit keeps: the file that pretends to be the system's; -1: there is none. */
static int kept(void)
{
  char path[512];
  struct stat a, b;
  snprintf(path, sizeof path, "%s/proc/self/statm", root);
  EXPECT(stat(path, &a) == 0, "%s", path);
  for (int file = 3; file < 1000; file++)
    if (fstat(file, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino) return file;
  return -1;
}

/* No descriptor is free, or the process has changed its root: the file that was opened at the start says it. */
static void unopened(void)
{
  begin();
  limit_of("limit=256M");
  int file = kept();
  EXPECT(file >= 100 && (fcntl(file, F_GETFD) & FD_CLOEXEC) != 0, "it is kept, out of the way: %d", file);
  oh_proc_system = "/nowhere";
  oh_limit_cycle(0, 0, now);
  for (size_t used = 100; used < 250; used += 50) {
    use(used * M);
    EXPECT(oh_limit_used() == used * M, "%zu", oh_limit_used());
  }
  for (int i = 0; i < 10; i++) {
    double share = due(200 * M, M, 0);
    EXPECT(i == 0 || (share > 1.0 / 56 && share < 1.5 / 56), "%f", share);
  }
  /* The child of a fork does not read what its parent uses. */
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    use(200 * M);
    oh_limit_forked();
    if (kept() != -1) _exit(1);
    _exit(oh_limit_used() == 200 * M ? 0 : 2); /* the estimate: as much as before */
  }
  int status;
  EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "%x", status);
  EXPECT(kept() == file && oh_limit_used() == 200 * M, "the parent goes on");
  end();
}

/* Nor can that be read: the program has closed it. */
static void blind(void)
{
  begin();
  quiet();
  limit_of("limit=256M");
  use(200 * M);
  EXPECT(oh_limit_used() == 200 * M, "%zu", oh_limit_used());
  int file = kept(), other = dup2(STDOUT_FILENO, file); /* the number is the program's now */
  EXPECT(other == file && oh_limit_used() == 200 * M && kept() != -1 && kept() != file, "it is opened again");
  EXPECT(fcntl(other, F_GETFD) == 0, "what is not ours stays open");
  file = kept();
  close(file);
  oh_proc_system = "/nowhere";
  EXPECT(oh_limit_used() == 200 * M, "%zu", oh_limit_used());
  oh_limit_cycle(0, 0, now);
  (void)due(200 * M, M, 0);
  for (int i = 0; i < 10; i++) {
    double share = due(200 * M, M, 0);
    EXPECT(share > 1.0 / 56 && share < 1.5 / 56, "as before: %f", share);
  }
  /* The heap's own account goes on. */
  enum { POOLS = (20 << 20) / OH_POOL };
  static void *pools[POOLS];
  for (int i = 0; i < POOLS; i++) pools[i] = oh_pool_alloc();
  size_t more = oh_limit_used();
  EXPECT(more >= 220 * M && more < 230 * M, "%zu", more);
  for (int i = 0; i < POOLS; i++) oh_pool_free(pools[i]);
  oh_pool_trim(1);
  EXPECT(OH_SBRK || oh_limit_used() < 205 * M, "it has gone back: %zu", oh_limit_used());
  /* What is not the heap's shows when the peak grows, and stays. */
  oh_limit_peak = 240 * M + 100 * (size_t)sysconf(_SC_PAGESIZE);
  EXPECT(oh_limit_used() == 240 * M && oh_limit_used() == 240 * M, "%zu", oh_limit_used());
  use(30 * M);
  oh_proc_system = root;
  EXPECT(oh_limit_used() == 30 * M && kept() != -1, "the system tells again");
  oh_limit_peak = 0;
  end();
}

static void say_it_twice(void)
{
  begin();
  limit_of("limit=256M");
  close(kept());
  oh_proc_system = "/nowhere";
  for (int i = 0; i < 3; i++) EXPECT(oh_limit_used() != 0, "it is not known");
  end();
}

static void said_once(void)
{
  char const *said = try_said(NULL, say_it_twice);
  EXPECT(try_times(said, "it is estimated") == 1, "%s", said);
}

/* After a compaction what was free in pools is no room any more. */
static void moved(void)
{
  begin();
  limit_of("limit=256M");
  use(240 * M);
  oh_limit_cycle(100 * M, 120 * M, now);
  (void)due(240 * M, M, 0);
  double before = due(240 * M, M, 0);
  oh_limit_moved(0);
  double after = due(240 * M, M, 0);
  EXPECT(before < 1.5 / 136 && after > 1.0 / 16 && after < 1.5 / 16, "%f %f", before, after);
  end();
}

/* The part of its time that a domain spends, where each slice that is due takes 20 ms. */
static double spent_with(size_t bytes)
{
  unsigned worked = 0;
  for (int i = 0; i < 2000; i++)
    if (due(bytes, M, 0) > 0) {
      now += 20 * MS;
      oh_limit_slice(0, now, 20 * MS);
      worked++;
    }
  double spent = 20.0 * worked;
  return spent / (spent + 5.0 * 2000);
}

static void share_of_time(void)
{
  begin();
  limit_of("limit=256M");
  due(250 * M, M, 0);
  size_t held = oh_limit_counters.held;
  double share = spent_with(250 * M);
  EXPECT(share > 0.4 && share < 0.55, "%.2f of the time", share);
  EXPECT(oh_limit_counters.held > held + 1000, "%zu", oh_limit_counters.held);
  /* Another domain has its own. */
  EXPECT(oh_limit_due(7, M, 0, now) > 0, "it has spent nothing");
  end();
}

/* More, where what is kept free of a hard limit is in use. */
static void share_of_time_when_urgent(void)
{
  begin();
  put("/proc/self/cgroup", "0::/\n");
  put("/sys/fs/cgroup/memory.max", "%zu\n", 400 * M);
  limit_of("limit=cgroup");
  double share = spent_with(396 * M);
  EXPECT(share > 0.75, "%.2f of the time", share);
  end();
}

/* A domain that begins late is not charged for what others have allocated before; nor is one that takes the number of
   another. */
static void late_domains(void)
{
  begin();
  limit_of("limit=256M");
  for (int i = 0; i < 100; i++) (void)due(200 * M, 10 * M, 0);
  double first = oh_limit_due(9, M, 0, now);
  EXPECT(first > 0 && first < 2.0 / 56, "%f", first);
  for (int i = 0; i < 100; i++) (void)due(200 * M, 10 * M, 0);
  oh_limit_leave(9);
  double second = oh_limit_due(9, M, 0, now);
  EXPECT(second > 0 && second < 2.0 / 56, "%f", second);
  end();
}

/* Below a control group's limit a margin is left, as large as it was seen to be too small. Large blocks ask before. */
static void margin(void)
{
  begin();
  limit_of("limit=380M");
  EXPECT(oh_limit_is_large(6 * M) && !oh_limit_is_large(5 * M), "a 64th");
  use(365 * M);
  EXPECT(!oh_limit_exceeds(9, 10 * M, now) && oh_limit_exceeds(9, 20 * M, now), "none below a soft one");
  put("/proc/self/cgroup", "0::/\n");
  put("/sys/fs/cgroup/memory.max", "%zu\n", 400 * M);
  limit_of("limit=cgroup");
  use(340 * M);
  EXPECT(!oh_limit_exceeds(9, 10 * M, now) && oh_limit_exceeds(9, 20 * M, now), "a 16th");
  (void)due(396 * M, M, 0);
  use(330 * M);
  EXPECT(!oh_limit_exceeds(9, 9 * M, now) && oh_limit_exceeds(9, 13 * M, now), "40 MB more than 356 were used");
  for (int i = 0; i < 100; i++) (void)oh_limit_cycle(300 * M, 0, now);
  EXPECT(!oh_limit_exceeds(9, 20 * M, now), "which is forgotten");
  end();
}

/* Several domains end cycles when the limit is passed; for that all have one share of time in common. */
static void passed(void)
{
  begin();
  limit_of("limit=256M");
  (void)due(200 * M, M, 0);
  EXPECT(!oh_limit_is_passed(), "there is room");
  (void)due(260 * M, M, 0);
  now += 2000 * MS;
  EXPECT(oh_limit_is_passed() && oh_limit_exceeds(20, 0, now), "there is none");
  now += 100 * MS;
  oh_limit_stopped(20, now, 100 * MS);
  EXPECT(oh_limit_exceeds(21, 0, now), "a sixth of the time");
  oh_limit_stopped(20, now, 300 * MS);
  EXPECT(!oh_limit_exceeds(21, 0, now), "another domain was stopped, too");
  now += 500 * MS;
  EXPECT(oh_limit_exceeds(21, 0, now), "a third");
  end();
}

static void ends_of_cycles(void)
{
  begin();
  quiet();
  limit_of("limit=256M");
  use(200 * M);
  EXPECT(!oh_limit_cycle(100 * M, 90 * M, now), "there is room");
  EXPECT(!oh_limit_wants_memory(), "there is room");
  use(250 * M);
  EXPECT(!oh_limit_cycle(240 * M, 3 * M, now) && !oh_limit_cycle(240 * M, 10 * M, now), "nothing to be had");
  EXPECT(oh_limit_cycle(150 * M, 90 * M, now), "there is much");
  oh_limit_compacted(now + 30 * MS, 30 * MS);
  EXPECT(!oh_limit_cycle(150 * M, 90 * M, now + 50 * MS), "it took half of the time");
  EXPECT(oh_limit_cycle(150 * M, 90 * M, now + 91 * MS), "less than half");
  use(300 * M);
  size_t exceeded = oh_limit_counters.exceeded;
  oh_limit_cycle(299 * M, 0, now);
  EXPECT(oh_limit_counters.exceeded == exceeded + 1, "it does not hold");
  EXPECT(!oh_limit_wants_memory(), "but nothing can be given back");
  end();
}

/* What malloc keeps goes back near the limit, and when asked for; after a time that was of no use it is left alone. */
static unsigned trims;
static size_t stays;
static void trim_malloc(void)
{
  trims++;
  use(stays);
  oh_clock_advance(10 * MS, 0); /* it takes so long */
}
static void of_malloc(void)
{
  oh_clock_step();
  begin();
  quiet();
  limit_of("limit=256M");
  oh_limit_malloc = trim_malloc;
  use(200 * M);
  oh_limit_cycle(100 * M, 0, now);
  EXPECT(!oh_limit_wants_memory() && trims == 0, "there is room");
  use(250 * M);
  stays = 120 * M;
  oh_limit_cycle(100 * M, 0, now);
  EXPECT(!oh_limit_wants_memory() && trims == 1 && oh_limit_used() == 120 * M, "it gave back: %u", trims);
  double share = due(120 * M, M, 0);
  EXPECT(share == 0, "there is room again: %f", share);
  use(stays = 250 * M);
  EXPECT(oh_limit_trim_malloc(false) == 0 && trims == 1, "too soon");
  EXPECT(oh_limit_trim_malloc(true) == 0 && trims == 2, "asked for");
  oh_clock_advance(10 * MS * OH_LIMIT_MALLOC, 0);
  EXPECT(oh_limit_trim_malloc(false) == 0 && trims == 2, "it was of no use");
  oh_clock_advance(10 * MS * OH_LIMIT_MALLOC, 0);
  stays = 150 * M;
  EXPECT(oh_limit_trim_malloc(false) == 100 * M && trims == 3, "now it is: %u", trims);
  oh_limit_malloc = NULL;
  end();
}
static void what_malloc_keeps(void) { in_child(NULL, of_malloc); }

int main(int argc, char **argv)
{
  try_start(argc, argv);
  TRY(what_malloc_keeps); /* first: nothing has been trimmed yet */
  TRY(settings);
  TRY(groups);
  TRY(old_groups);
  TRY(floors);
  TRY(pace);
  TRY(others);
  TRY(growth);
  TRY(said_once);
  TRY(unopened);
  TRY(moved);
  TRY(share_of_time);
  TRY(share_of_time_when_urgent);
  TRY(late_domains);
  TRY(margin);
  TRY(passed);
  TRY(ends_of_cycles);
  TRY(blind); /* which leaves free memory */
  return try_end();
}
