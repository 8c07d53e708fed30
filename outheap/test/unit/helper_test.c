/* SPDX-License-Identifier: MIT */
/* The helper's account of what it did, which several threads ask for, and its end, which may be asked for before it
   begins, from several threads. */
#include "helper.h"
#include "proc.h"
#include "outheap.h"
#include "try.h"
#include <sched.h>
#include <sys/stat.h>

/* --- stretches of work -------------------------------------------------------------------------------------------- */

enum { TAKERS = 3, ROUNDS = 300, EACH = 500, MOST = 1024 };
static unsigned char times[ROUNDS * EACH]; /* that each was given out */
static size_t taken;
static size_t first; /* number of the first one of this test */
static bool over;
static pthread_barrier_t begins;

static size_t take(size_t most)
{
  struct outheap_helper_span some[MOST];
  size_t n = outheap_helper_spans(some, most);
  for (size_t i = 0; i < n; i++) {
    struct outheap_helper_span *s = &some[i];
    EXPECT(i == 0 || s->number > some[i - 1].number, "%zu after %zu", s->number, some[i - 1].number);
    EXPECT(s->began == s->number && s->ended == s->number + 1 && s->work == s->number + 2, "%zu", s->number);
    EXPECT(s->number >= first && s->number - first < sizeof times, "%zu", s->number);
    EXPECT(__atomic_fetch_add(&times[s->number - first], 1, __ATOMIC_RELAXED) == 0, "%zu again", s->number);
  }
  __atomic_fetch_add(&taken, n, __ATOMIC_RELAXED);
  return n;
}

static void *takes(void *seed)
{
  uint64_t state = (uint64_t)(uintptr_t)seed;
  pthread_barrier_wait(&begins);
  while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) take(1 + try_below(&state, MOST));
  return NULL;
}

/* Never so many that some would be dropped. */
static void each_is_taken_once(void)
{
  struct outheap_helper_span one;
  oh_helper_note(true, 1, 2, 3);
  EXPECT(outheap_helper_spans(&one, 1) == 1, "noted and taken");
  first = one.number + 1;
  pthread_t some[TAKERS];
  pthread_barrier_init(&begins, NULL, TAKERS + 1);
  for (size_t i = 0; i < TAKERS; i++)
    EXPECT(pthread_create(&some[i], NULL, takes, (void *)(uintptr_t)(try_seed + i)) == 0, "thread %zu", i);
  pthread_barrier_wait(&begins);
  for (size_t n = 0; n < sizeof times; n++) {
    oh_helper_note(n % 2 == 0, first + n, first + n + 1, first + n + 2);
    time_t late = time(NULL) + 60;
    while (n % EACH == EACH - 1 && __atomic_load_n(&taken, __ATOMIC_RELAXED) <= n) {
      EXPECT(time(NULL) < late, "of %zu only %zu were given out", n + 1, taken);
      sched_yield();
    }
  }
  __atomic_store_n(&over, true, __ATOMIC_RELEASE);
  for (size_t i = 0; i < TAKERS; i++) pthread_join(some[i], NULL);
  for (size_t n = 0; n < sizeof times; n++) EXPECT(times[n] == 1, "%zu was taken %d times", n, times[n]);
  EXPECT(take(MOST) == 0, "there is nothing more");
}

static void the_last_ones_are_kept(void)
{
  struct outheap_helper_span some[MOST + 1];
  while (outheap_helper_spans(some, MOST) != 0) {}
  for (size_t n = 0; n < 3 * MOST; n++) oh_helper_note(false, n, n, n + 1);
  EXPECT(outheap_helper_spans(some, 0) == 0, "none are wanted");
  size_t n = outheap_helper_spans(some, MOST + 1);
  EXPECT(n == MOST, "%zu", n);
  EXPECT(some[0].work == 2 * MOST + 1 && some[MOST - 1].work == 3 * MOST, "from %zu on", some[0].work);
  EXPECT(outheap_helper_spans(some, 1) == 0, "taken");
}

/* --- its end ------------------------------------------------------------------------------------------------------ */

static size_t stops;
static void stop(void) { __atomic_fetch_add(&stops, 1, __ATOMIC_RELAXED); }

static void *ends(void *unused)
{
  pthread_barrier_wait(&begins);
  outheap_stop_helper();
  return unused;
}

/* In a process of its own, since it is for good. One thread starts it while others end it: either it is refused, or it
   is ended afterwards. */
static int race(void)
{
  pthread_t other;
  pthread_barrier_init(&begins, NULL, 2);
  if (pthread_create(&other, NULL, ends, NULL) != 0) return 2;
  pthread_barrier_wait(&begins);
  bool may = oh_helper_may_start(stop);
  pthread_join(other, NULL);
  if (may && stops == 0) return 3;
  if (oh_helper_may_start(stop)) return 4;
  return 0;
}

static int in_child(int (*function)(void))
{
  int status;
  pid_t child = fork();
  if (child == 0) _exit(function());
  EXPECT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status), "a child");
  return WEXITSTATUS(status);
}

static int early(void)
{
  outheap_stop_helper();
  outheap_stop_helper();
  return oh_helper_may_start(stop) ? 1 : stops != 0 ? 2 : 0;
}

static int late(void)
{
  if (!oh_helper_may_start(stop)) return 1;
  outheap_stop_helper();
  return stops != 1 ? 2 : oh_helper_may_start(stop) ? 3 : 0;
}

static void it_ends_for_good(void)
{
  int code = in_child(early);
  EXPECT(code == 0, "early: %d", code);
  code = in_child(late);
  EXPECT(code == 0, "late: %d", code);
  for (int i = 0; i < 200; i++) {
    code = in_child(race);
    EXPECT(code == 0, "race %d: %d", i, code);
  }
}

/* --- processors --------------------------------------------------------------------------------------------------- */

static char root[] = "/tmp/helper-test-XXXXXX";

static void put(char const *name, char const *text)
{
  char path[300];
  snprintf(path, sizeof path, "%s%s", root, name);
  for (char *p = path + 1; (p = strchr(p, '/')) != NULL; p++) {
    *p = 0;
    (void)mkdir(path, 0777);
    *p = '/';
  }
  FILE *file = fopen(path, "w");
  EXPECT(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, "%s", path);
}

/* How many there are, in a child: it asks once. */
static unsigned processors(void)
{
  int status;
  pid_t child = fork();
  if (child == 0) _exit((int)oh_helper_processors());
  EXPECT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status), "child");
  return (unsigned)WEXITSTATUS(status);
}

/* Of which groups the quotas count; with one processor all is one. */
static void quotas(void)
{
  char long_path[4096 + 64] = "", command[100];
  EXPECT(mkdtemp(root) != NULL, "no folder");
  oh_proc_system = root;
  unsigned all = processors();
  put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "50000\n");
  put("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  put("/proc/self/cgroup", "7:memory,cpuset:/x\n6:blkio,cpuacct:/x\n5:cpus:/x\n");
  EXPECT(processors() == all, "controllers with other names");
  static char const *const names[] = { "cpu", "cpu,cpuacct", "cpuacct,cpu", "cpuset,cpu,cpuacct" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(long_path, sizeof long_path, "4:%s:/x\n", names[i]);
    put("/proc/self/cgroup", long_path);
    EXPECT(processors() == 1, "%s", names[i]);
  }
  put("/proc/self/cgroup", "4:cpu:/x/y/z\n");
  EXPECT(processors() == 1, "of a group around it");
  /* The line that counts comes after all that others have to say. */
  strcpy(long_path, "9:memory:/");
  memset(long_path + strlen(long_path), 'p', 4000);
  strcat(long_path, "\n0::/y\n");
  put("/proc/self/cgroup", long_path);
  EXPECT(processors() == all, "no quota");
  put("/sys/fs/cgroup/y/cpu.max", "max 100000\n");
  EXPECT(processors() == all, "no quota either");
  put("/sys/fs/cgroup/y/cpu.max", "100000 100000\n");
  EXPECT(processors() == 1, "behind a long line");
  snprintf(command, sizeof command, "rm -rf %s", root);
  EXPECT(system(command) == 0, "%s", command);
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  TRY(each_is_taken_once);
  TRY(the_last_ones_are_kept);
  TRY(it_ends_for_good);
  TRY(quotas);
  return try_end();
}
