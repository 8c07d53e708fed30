/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "proc.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- reading files ------------------------------------------------------------------------------------------------ */

#ifdef OH_FAULTS
char const *oh_proc_system = "";
#else
#define oh_proc_system ""
#endif

#define PATH_ROOM 4097 /* of a path in /proc/self/cgroup, with its end */

static int open_file(char const *name)
{
  char elsewhere[PATH_ROOM + 1200];
  if (*oh_proc_system == 0) return open(name, O_RDONLY | O_CLOEXEC);
  snprintf(elsewhere, sizeof elsewhere, "%s%s", oh_proc_system, name);
  return open(elsewhere, O_RDONLY | O_CLOEXEC);
}

/* The beginning of a file, whatever was read of it before. False: it cannot be read. */
static bool read_open(int file, char *text, size_t room)
{
  ssize_t n;
  do n = pread(file, text, room - 1, 0);
  while (n < 0 && errno == EINTR);
  if (n < 0) return false;
  text[n] = 0;
  return true;
}

static bool read_file(char const *name, char *text, size_t room)
{
  int error = errno, file = open_file(name);
  bool good = file >= 0 && read_open(file, text, room);
  if (file >= 0) close(file);
  errno = error;
  return good;
}

/* Each line, without its end, in `line`; what does not fit there is cut. False: the file cannot be read. */
static bool each_line(char const *name, char *line, size_t room, void (*function)(char *line, void *data), void *data)
{
  int error = errno, file = open_file(name);
  char text[4096];
  size_t length = 0;
  ssize_t n = -1;
  while (file >= 0 && ((n = read(file, text, sizeof text)) > 0 || (n < 0 && errno == EINTR)))
    for (ssize_t i = 0; i < n; i++)
      if (text[i] == '\n') {
        line[length] = 0;
        function(line, data);
        length = 0;
      }
      else if (length < room - 1) line[length++] = text[i];
  if (file >= 0) close(file);
  errno = error;
  return n == 0;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* The program may close any descriptor, and have the number for a file of its own. So it is looked at before each use,
   and one that is not this file is left alone. What a child has from its parent tells about the parent. Its number is
   high, as programs expect the low ones in order. A descriptor of /proc would do more, and lead out of a new root.

   Changed by who has set `opening`, with `file` written last. A reader that sees a mixture of two states finds that
   they do not fit together, and does not read. */
#define STATM "/proc/self/statm"
#define FILE_FROM 200
static struct { int file; long process; dev_t device; ino_t inode; } statm = { .file = -1 };
static bool keeps, opening;

static long process(void)
{
#ifdef __wasm__
  return 1;
#else
  return (long)getpid();
#endif
}

static bool is_ours(int file)
{
  struct stat s;
  return file >= 0 && fstat(file, &s) == 0 && s.st_dev == oh_load_relaxed(&statm.device)
         && s.st_ino == oh_load_relaxed(&statm.inode);
}

static void open_statm(void)
{
  struct stat s;
  int file = open_file(STATM);
#ifdef F_DUPFD_CLOEXEC /* which wasm has not */
  int high = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, FILE_FROM);
  if (high >= 0) {
    close(file);
    file = high;
  }
#endif
  if (file >= 0) {
    s.st_dev = 0;
    s.st_ino = 0;
    (void)fstat(file, &s);
    oh_store_relaxed(&statm.process, process());
    oh_store_relaxed(&statm.device, s.st_dev);
    oh_store_relaxed(&statm.inode, s.st_ino);
  }
  oh_store_release(&statm.file, file);
}

void oh_proc_release(void)
{
  int error = errno;
  if (is_ours(statm.file)) close(statm.file);
  statm.file = -1;
  keeps = false;
  errno = error;
}

void oh_proc_keep(void)
{
  int error = errno;
  oh_proc_release();
  keeps = true;
  open_statm();
  errno = error;
}

void oh_proc_forked(void)
{
  __atomic_clear(&opening, __ATOMIC_RELEASE); /* who had set it is not here */
  if (keeps) oh_proc_keep();
}

static bool read_statm(char *text, size_t room)
{
  if (!keeps) return read_file(STATM, text, room);
  int error = errno, file = oh_load_acquire(&statm.file);
  bool good = oh_load_relaxed(&statm.process) == process() && is_ours(file) && read_open(file, text, room);
  /* Not closed: a child that clone has made may share the descriptors of its parent. */
  if (!good && !__atomic_test_and_set(&opening, __ATOMIC_ACQUIRE)) {
    open_statm();
    good = is_ours(statm.file) && read_open(statm.file, text, room);
    __atomic_clear(&opening, __ATOMIC_RELEASE);
  }
  else if (!good) good = read_file(STATM, text, room);
  errno = error;
  return good;
}

bool oh_proc_memory(struct oh_proc_memory *m)
{
  char text[128];
  unsigned long long size, resident, shared;
  if (!read_statm(text, sizeof text)) return false;
  if (sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3) return false;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  m->shared = (size_t)shared * page;
  m->own = resident > shared ? (size_t)(resident - shared) * page : 0;
  return true;
}

size_t oh_proc_available(void)
{
  char text[512];
  unsigned long long kilobytes;
  if (!read_file("/proc/meminfo", text, sizeof text)) return SIZE_MAX;
  char const *line = strstr(text, "MemAvailable:");
  return line == NULL || sscanf(line, "MemAvailable: %llu kB", &kilobytes) != 1 ? SIZE_MAX : (size_t)kilobytes << 10;
}

bool oh_proc_mappings(void (*function)(char *line, void *data), void *data)
{
  char line[128];
  return each_line("/proc/self/smaps", line, sizeof line, function, data);
}

/* --- control groups ----------------------------------------------------------------------------------------------- */

/* A group: its path, which begins with a slash, or is empty for the root. */
struct group { bool second; char const *folder, *path; };

/* The number in a file of the group, or the first two; true: it has so many. Version 1 of control groups says that
   there is no limit by a number beyond all memory. */
static bool read_numbers(struct group const *g, char const *file, int count, size_t *numbers)
{
  char name[PATH_ROOM + 100], text[64], *end = text;
  int n = snprintf(name, sizeof name, "%s%s/%s", g->folder, g->path, file);
  if (n < 0 || (size_t)n >= sizeof name || !read_file(name, text, sizeof text)) return false;
  for (int i = 0; i < count; i++) {
    char *begin = end + strspn(end, " ");
    unsigned long long number = strtoull(begin, &end, 10);
    if (end == begin || number >= 1ull << 60) return false;
    numbers[i] = (size_t)number;
  }
  return true;
}

/* Is the controller one of these names, between which there are commas? */
static bool has(char const *names, char const *controller)
{
  for (size_t length;; names += length + 1) {
    length = strcspn(names, ",");
    if (length == strlen(controller) && strncmp(names, controller, length) == 0) return true;
    if (names[length] == 0) return false;
  }
}

/* What is asked for each group of a controller. */
struct question {
  char const *controller;
  size_t (*least)(struct group const *); /* what the group allows; SIZE_MAX: all */
  size_t result;
};

/* A line of /proc/self/cgroup, NUMBER:CONTROLLERS:PATH: the group, and those around it. That a process sees its own
   group as the root, as in most containers, is one of these. The second version names no controllers. */
static void ask_groups(char *line, void *data)
{
  struct question *q = data;
  char folder[64], *names = strchr(line, ':'), *path = names == NULL ? NULL : strchr(names + 1, ':');
  if (path == NULL || path[1] != '/') return;
  *path++ = 0;
  struct group g = { names[1] == 0, folder, path };
  if (!g.second && !has(names + 1, q->controller)) return;
  snprintf(folder, sizeof folder, "/sys/fs/cgroup%s%s", g.second ? "" : "/", g.second ? "" : q->controller);
  for (;;) {
    size_t n = q->least(&g);
    if (n < q->result) q->result = n;
    char *last = strrchr(path, '/');
    if (last == NULL) return;
    *last = 0;
  }
}

static size_t ask(char const *controller, size_t (*least)(struct group const *))
{
  char line[PATH_ROOM + 256];
  struct question q = { controller, least, SIZE_MAX };
  (void)each_line("/proc/self/cgroup", line, sizeof line, ask_groups, &q);
  return q.result;
}

static size_t memory_of(struct group const *g)
{
  static char const *const files[2][2] = {
    { "memory.limit_in_bytes", "memory.soft_limit_in_bytes" }, { "memory.max", "memory.high" }
  };
  size_t least = SIZE_MAX, n[2];
  for (int i = 0; i < 2; i++)
    if (read_numbers(g, files[g->second][i], 1, n) && n[0] < least) least = n[0];
  return least;
}

static size_t processors_of(struct group const *g)
{
  size_t n[2];
  bool has_quota = g->second ? read_numbers(g, "cpu.max", 2, n)
                             : read_numbers(g, "cpu.cfs_quota_us", 1, &n[0])
                               && read_numbers(g, "cpu.cfs_period_us", 1, &n[1]);
  return has_quota && n[0] != 0 && n[1] != 0 ? (n[0] - 1) / n[1] + 1 : SIZE_MAX;
}

size_t oh_proc_group_memory(void) { return ask("memory", memory_of); }

unsigned oh_proc_group_processors(void)
{
  size_t n = ask("cpu", processors_of);
  return n > UINT32_MAX ? 0 : (unsigned)n;
}

/* --- the machine's settings --------------------------------------------------------------------------------------- */

enum oh_proc_thp oh_proc_thp(void)
{
  char text[64];
  if (!read_file("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text)) return OH_PROC_THP_NONE;
  if (strstr(text, "[always]") != NULL) return OH_PROC_THP_ALWAYS;
  return strstr(text, "[never]") != NULL ? OH_PROC_THP_NEVER : OH_PROC_THP_MADVISE;
}

bool oh_proc_is_strict(void)
{
  char text[8];
  return read_file("/proc/sys/vm/overcommit_memory", text, sizeof text) && *text == '2';
}
