/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "helper.h"
#include "settings.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

struct oh_helper_counters oh_helper_counters;
struct oh_helper_fork const *oh_helper_forks;

/* Each side writes its own variable and then reads the other's, both sequentially consistent: so whoever ends the
   helper sees `stop`, or the helper sees `ended`. */
static void (*stop)(void);
static bool ended;

void oh_helper_end(void)
{
  __atomic_store_n(&ended, true, __ATOMIC_SEQ_CST);
  void (*function)(void) = __atomic_load_n(&stop, __ATOMIC_SEQ_CST);
  if (function != NULL) function();
}

bool oh_helper_may_start(void (*function)(void))
{
  __atomic_store_n(&stop, function, __ATOMIC_SEQ_CST);
  return !__atomic_load_n(&ended, __ATOMIC_SEQ_CST);
}

/* The last ones, at their number modulo OH_HELPER_SPANS. Under the lock; `noted` is also read without it: as long as
   it is 0, there has been no helper, so that forks do not know the lock. */
enum { OH_HELPER_SPANS = 1024 };
static struct {
  pthread_mutex_t lock;
  struct outheap_helper_span all[OH_HELPER_SPANS];
  size_t noted, taken; /* taken <= noted */
} spans = { .lock = PTHREAD_MUTEX_INITIALIZER };

void oh_helper_lock_spans(void) { pthread_mutex_lock(&spans.lock); }

void oh_helper_unlock_spans(bool child)
{
  if (child) spans.taken = spans.noted;
  pthread_mutex_unlock(&spans.lock);
}

void oh_helper_note(bool marks, uint64_t began, uint64_t ended, size_t work)
{
  oh_helper_lock_spans();
  size_t n = spans.noted;
  spans.all[n % OH_HELPER_SPANS] = (struct outheap_helper_span){ n, began, ended, work, marks };
  oh_store_relaxed(&spans.noted, n + 1);
  oh_helper_unlock_spans(false);
  oh_helper_count(&oh_helper_counters.spans, 1);
}

/* A few at a time, and not to the caller's memory, which may be new: whoever has the lock makes the helper wait, with
   its own lock in hand. */
size_t oh_helper_take(struct outheap_helper_span *to, size_t most)
{
  enum { AT_ONCE = 16 };
  struct outheap_helper_span some[AT_ONCE];
  size_t n = 0, taken;
  if (oh_load_relaxed(&spans.noted) == 0) return 0;
  do {
    oh_helper_lock_spans();
    if (spans.noted - spans.taken > OH_HELPER_SPANS) spans.taken = spans.noted - OH_HELPER_SPANS;
    for (taken = 0; taken < AT_ONCE && n + taken < most && spans.taken < spans.noted; taken++, spans.taken++)
      some[taken] = spans.all[spans.taken % OH_HELPER_SPANS];
    oh_helper_unlock_spans(false);
    if (taken != 0) memcpy(to + n, some, taken * sizeof *some);
    n += taken;
  } while (taken == AT_ONCE);
  return n;
}

void oh_helper_refuse(void)
{
  static bool told;
  if (oh_settings.helper == OH_SETTINGS_HELPER_OFF || told) return;
  told = true;
  oh_log("OUTHEAP: helper is not available for this version of OCaml, this processor, or this flavour");
}

#ifdef OH_FAULTS
char const *oh_helper_system = "";
#else
#define oh_helper_system ""
#endif

#define PATH_ROOM 4097 /* of a path in /proc/self/cgroup, with its end */

static FILE *open_file(char const *folder, char const *path, char const *file)
{
  char name[PATH_ROOM + 1200];
  int n = snprintf(name, sizeof name, "%s%s%s%s", oh_helper_system, folder, path, file);
  return n < 0 || (size_t)n >= sizeof name ? NULL : fopen(name, "re");
}

/* The number in such a file, or the first two; true: it has so many. */
static bool read_numbers(char const *folder, char const *path, char const *file, int count, long numbers[2])
{
  FILE *f = open_file(folder, path, file);
  if (f == NULL) return false;
  bool good = fscanf(f, "%ld %ld", &numbers[0], &numbers[1]) >= count;
  fclose(f);
  return good;
}

/* Processors of a group's quota, rounded up; 0: it has none. */
static unsigned quota(bool second, char const *path)
{
  static char const folder[] = "/sys/fs/cgroup/cpu";
  long numbers[2], period[2];
  if (second) {
    if (!read_numbers("/sys/fs/cgroup", path, "/cpu.max", 2, numbers)) return 0;
  }
  else {
    if (!read_numbers(folder, path, "/cpu.cfs_quota_us", 1, numbers)) return 0;
    if (!read_numbers(folder, path, "/cpu.cfs_period_us", 1, period)) return 0;
    numbers[1] = period[0];
  }
  if (numbers[0] <= 0 || numbers[1] <= 0) return 0;
  return (unsigned)((numbers[0] - 1) / numbers[1] + 1);
}

/* Is `cpu` one of these names, between which there are commas? */
static bool has_cpu(char const *names)
{
  for (;; names++) {
    size_t length = strcspn(names, ",");
    if (length == 3 && strncmp(names, "cpu", 3) == 0) return true;
    names += length;
    if (*names == 0) return false;
  }
}

/* The least quota of the group of a line of /proc/self/cgroup, and of all groups above: NUMBER:CONTROLLERS:PATH. It
   counts if it is of the second version, which names no controllers, or of the first one's `cpu`. */
static unsigned quota_of_line(char *line)
{
  unsigned least = 0;
  char *names = strchr(line, ':'), *path = names == NULL ? NULL : strchr(names + 1, ':');
  if (path == NULL) return 0;
  *path++ = 0;
  bool second = *++names == 0;
  if (!second && !has_cpu(names)) return 0;
  for (;;) {
    unsigned n = quota(second, path);
    if (n != 0 && (least == 0 || n < least)) least = n;
    char *last = strrchr(path, '/');
    if (last == NULL) return least;
    *last = 0;
  }
}

/* Processors that this process's control groups allow; 0: any number. In a container the groups are mostly the root. */
static unsigned group_quota(void)
{
  char line[PATH_ROOM + 256];
  unsigned least = 0;
  int error = errno;
  FILE *f = open_file("/proc/self/cgroup", "", "");
  while (f != NULL && fgets(line, sizeof line, f) != NULL) {
    line[strcspn(line, "\n")] = 0;
    unsigned n = quota_of_line(line);
    if (n != 0 && (least == 0 || n < least)) least = n;
  }
  if (f != NULL) fclose(f);
  errno = error;
  return least;
}

unsigned oh_helper_processors(void)
{
  static unsigned limit;
  static bool known;
  unsigned n = 1;
#ifdef __linux__
  cpu_set_t set[8]; /* 8,192, as many as Linux knows; it refuses room for fewer than the machine may have */
  if (sched_getaffinity(0, sizeof set, set) == 0) n = (unsigned)CPU_COUNT_S(sizeof set, set);
#endif
  if (!known) {
    limit = group_quota();
    known = true;
  }
  if (limit != 0 && limit < n) n = limit;
  return n < 1 ? 1 : n;
}
