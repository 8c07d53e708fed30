/* SPDX-License-Identifier: MIT */
/* What the system refuses, and what is said about it: the zone, memory, huge pages; a sandbox without madvise, or
   without threads. */
#include "base.h"
#include "reclaim.h"
#include "os.h"
#include "outheap.h"
#include "settings.h"
#include "space_memory.h"
#include "start.h"
#include "try_child.h"
#include "address_space.h"
#include <dirent.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#if __has_include(<linux/seccomp.h>)
#include <linux/filter.h>
#include <linux/seccomp.h>
#endif

#ifdef SYS_clone3
#define CLONE3 SYS_clone3
#else
#define CLONE3 435
#endif

static size_t refused(enum oh_notice kind)
{
  struct outheap_statistics s;
  outheap_statistics(&s);
  return kind == OH_NOTICE_ZONE ? s.refused_zone : kind == OH_NOTICE_MEMORY ? s.refused_memory : s.refused_huge;
}

static void outside_of_the_zone(void)
{
  oh_start();
  EXPECT(oh_space_alloc(OH_SPACE_FOREIGN, OH_PAGE, true, NULL) != NULL, "records for all");
  for (int i = 0; i < 2; i++) {
    oh_os_fail_after = 1; /* the attempt in the zone */
    char *p = oh_space_alloc(i == 0 ? OH_SPACE_BLOCKS : OH_SPACE_POOLS, OH_CHUNK, false, NULL);
    EXPECT(oh_os_fail_after == 0 && p != NULL, "elsewhere");
  }
  /* With small chunks the failure of an attempt may have been one to get memory for records. */
  EXPECT(refused(OH_NOTICE_ZONE) == 2 || (OH_CHUNK < 64 * M && refused(OH_NOTICE_ZONE) == 1), "%zu",
         refused(OH_NOTICE_ZONE));
  EXPECT(refused(OH_NOTICE_MEMORY) == 0, "%zu", refused(OH_NOTICE_MEMORY));
}
static void zone(void)
{
  if (TRY_SANITIZED) return; /* no zone there */
  char const *text = try_said("warn=1", outside_of_the_zone);
  EXPECT(try_times(text, "outside of its part of the address space") == 1, "%s", text);
  text = try_said(NULL, outside_of_the_zone);
  EXPECT(text[0] == 0, "not asked for: %s", text);
}

/* Something else has taken addresses of the zone: from the beginning of a part, so many parts. */
static void occupy(int part, size_t parts)
{
  void *at = (void *)oh_zone_part(part);
  void *p = mmap(at, parts * oh_zone_part_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT(p == at, "occupied");
}
static bool in_zone(void const *p)
{
  return (uintptr_t)p - oh_zone_part(0) < (OH_SPACES + 1) * oh_zone_part_size();
}
static size_t placed(void)
{
  struct outheap_statistics s;
  outheap_statistics(&s);
  return s.reservations;
}

/* The part of large blocks is not to be had: another place in the zone will do, but that is said. */
static void without_its_part(void)
{
  oh_start();
  char *before = oh_space_alloc(OH_SPACE_BLOCKS, OH_CHUNK, false, NULL);
  EXPECT(before != NULL && refused(OH_NOTICE_ZONE) == 0, "its part: %zu", refused(OH_NOTICE_ZONE));
  uintptr_t part = oh_zone_part(0);
  int n = (int)(((uintptr_t)before - part) / oh_zone_part_size());
  for (uintptr_t c = (uintptr_t)before + OH_CHUNK, end = oh_zone_part(n + 1); c < end; c = end)
    EXPECT(mmap((void *)c, end - c, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == (void *)c, "map");
  for (size_t i = 1; i <= 3; i++) {
    size_t reservations = placed();
    char *p = oh_space_alloc(OH_SPACE_BLOCKS, 2 * OH_CHUNK, false, NULL);
    EXPECT(p != NULL && in_zone(p) && oh_space_commit(OH_SPACE_BLOCKS, p, OH_PAGE), "%p", (void *)p);
    EXPECT(refused(OH_NOTICE_ZONE) == i, "%zu after %zu", refused(OH_NOTICE_ZONE), i);
    EXPECT(placed() - reservations < 100, "%zu attempts", placed() - reservations);
    p[0] = 1;
  }
  EXPECT(oh_space_alloc(OH_SPACE_POOLS, OH_CHUNK, false, NULL) != NULL && refused(OH_NOTICE_ZONE) == 3, "others");
}
/* Nothing of the zone is: the system chooses. */
static void without_a_zone(void)
{
  oh_start();
  occupy(0, OH_SPACES + 1);
  for (size_t i = 1; i <= 3; i++) {
    size_t reservations = placed();
    char *p = oh_space_alloc(i == 2 ? OH_SPACE_POOLS : OH_SPACE_BLOCKS, 2 * OH_CHUNK, false, NULL);
    EXPECT(p != NULL && !in_zone(p), "%p", (void *)p);
    EXPECT(refused(OH_NOTICE_ZONE) == i, "%zu after %zu", refused(OH_NOTICE_ZONE), i);
    EXPECT(placed() - reservations < 200, "%zu attempts", placed() - reservations);
  }
  EXPECT(refused(OH_NOTICE_MEMORY) == 0, "%zu", refused(OH_NOTICE_MEMORY));
}
/* A range of addresses, for minor heaps that grow. */
static void without_a_part_for_ranges(void)
{
  oh_start();
  occupy(0, 1); /* that of minor heaps */
  void *p = oh_space_take_range(OH_SPACE_YOUNG, 4 * OH_CHUNK);
  EXPECT(p != NULL && in_zone(p) && refused(OH_NOTICE_ZONE) == 1, "%p: %zu", p, refused(OH_NOTICE_ZONE));
}
static void occupied(void)
{
  if (TRY_SANITIZED) return; /* no zone there */
  void (*bodies[])(void) = { without_its_part, without_a_zone, without_a_part_for_ranges };
  for (int i = 0; i < 3; i++) {
    char const *text = try_said("warn=1", bodies[i]);
    EXPECT(try_times(text, "outside of its part of the address space") == 1, "%d: %s", i, text);
    text = try_said(NULL, bodies[i]);
    EXPECT(text[0] == 0, "not asked for: %s", text);
  }
}

static void above_a_limit(void)
{
  struct rlimit l;
  oh_start();
  EXPECT(getrlimit(RLIMIT_DATA, &l) == 0, "limit");
  l.rlim_cur = 300 * M;
  EXPECT(setrlimit(RLIMIT_DATA, &l) == 0, "limit");
  for (int i = 0; i < 2; i++)
    EXPECT(outheap_allocate(OUTHEAP_VALUES, 600 * M) == NULL && errno == ENOMEM, "more than the limit");
  EXPECT(refused(OH_NOTICE_MEMORY) == 2, "%zu", refused(OH_NOTICE_MEMORY));
  EXPECT(outheap_allocate(OUTHEAP_VALUES, OH_PAGE) != NULL, "less than the limit");
}
static void memory(void)
{
  if (TRY_SANITIZED || OH_ADDRESS_BITS == 57) return; /* which themselves need much */
  char const *text = try_said("warn=1", above_a_limit);
  EXPECT(try_times(text, "the system refused 629145600 bytes") == 1, "%s", text);
  text = try_said(NULL, above_a_limit);
  EXPECT(text[0] == 0, "not asked for: %s", text);
}

/* From now on these two system calls fail, as in some sandboxes. */
static bool forbid(unsigned one, unsigned other)
{
#ifdef SECCOMP_MODE_FILTER
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one, 1, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = { sizeof code / sizeof *code, code };
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
#else
  return (void)one, (void)other, false;
#endif
}
static bool forbid_madvise(void) { return forbid(SYS_madvise, SYS_madvise); }

/* Memory is given back all the same, and reads as zeroes. */
static void without_madvise(void)
{
  EXPECT(forbid_madvise(), "a filter");
  oh_start();
  char *m = outheap_allocate(OUTHEAP_VALUES, 4 * OH_PAGE);
  EXPECT(m != NULL && madvise(m, OH_PAGE, MADV_DONTNEED) != 0 && errno == EPERM, "it is forbidden");
  memset(m, 1, 4 * OH_PAGE);
  oh_space_purge(OH_SPACE_VALUES, m, oh_os_page_size());
  EXPECT(m[0] == 0 && m[oh_os_page_size()] == 1, "purged");
  outheap_free(OUTHEAP_VALUES, m, 4 * OH_PAGE);
  EXPECT(outheap_trim() == 4 * OH_PAGE && try_resident(m, 4 * OH_PAGE) == 0, "%zu", try_resident(m, 4 * OH_PAGE));
  char *n = outheap_allocate(OUTHEAP_VALUES, 4 * OH_PAGE);
  EXPECT(n != NULL && n[0] == 0 && n[4 * OH_PAGE - 1] == 0, "again");
  char *b = oh_space_alloc(OH_SPACE_BLOCKS, 16 * M, true, NULL); /* asks for huge pages */
  EXPECT(b != NULL && refused(OH_NOTICE_HUGE) != 0, "%zu", refused(OH_NOTICE_HUGE));
}
static void no_madvise(void)
{
  int status;
  pid_t child = fork();
  if (child == 0) _exit(!forbid_madvise());
  EXPECT(child > 0 && waitpid(child, &status, 0) == child, "child");
  if (TRY_SANITIZED || status != 0) return; /* sanitizers need it; or this system has no such filters */
  char const *text = try_said("keep=64M", without_madvise);
  EXPECT(text[0] == 0, "not asked for: %s", text);
  text = try_said("keep=64M,thp=advise", without_madvise); /* who asks for huge pages is told */
  EXPECT(try_times(text, "no huge pages") == 1, "%s", text);
}

/* Are there so many reclaim threads, at the latest in a minute? By their name: a sanitizer has threads of its own; a
   thread names itself after it was started, and is listed for a moment after it was joined. */
static bool reclaims(unsigned wanted)
{
  for (int tries = 0; tries < 60000; tries++, usleep(1000)) {
    unsigned n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *d; tasks != NULL && (d = readdir(tasks)) != NULL;) {
      char path[sizeof d->d_name + 32], name[32] = "";
      snprintf(path, sizeof path, "/proc/self/task/%s/comm", d->d_name);
      FILE *comm = fopen(path, "r");
      if (comm == NULL) continue;
      n += fgets(name, sizeof name, comm) != NULL && strncmp(name, "outheap-reclaim", 14) == 0;
      fclose(comm);
    }
    if (tasks != NULL) closedir(tasks);
    if (n == wanted) return true;
  }
  return false;
}
static bool is_delayed(void)
{
  oh_space_lock_all();
  bool delayed = oh_space_states[OH_SPACE_POOLS].delayed;
  oh_space_unlock_all();
  return delayed;
}

/* Without a reclaim thread memory goes back as if nobody had asked for one, and no one is asked for again. */
static void without_threads(void)
{
  oh_start();
  EXPECT(forbid(SYS_clone, CLONE3), "a filter");
  oh_reclaim_wake();
  EXPECT(reclaims(0) && !oh_reclaim_rests && !is_delayed(), "none");
  oh_reclaim_wake();
  oh_reclaim_stop();
}
/* It can be refused before it began: then there is none. */
static void without_a_keeper(void)
{
  oh_start();
  oh_reclaim_stop();
  oh_reclaim_wake();
  EXPECT(reclaims(0) && !is_delayed(), "none");
}
static void with_a_keeper(void)
{
  oh_start();
  oh_reclaim_wake();
  EXPECT(reclaims(1) && is_delayed(), "it runs");
  if (fork() == 0) _exit(reclaims(0) && !is_delayed() ? 0 : 1);
  int status = 1;
  EXPECT(wait(&status) > 0 && status == 0, "none in a child, which may have its own");
  oh_reclaim_stop();
  EXPECT(reclaims(0) && !is_delayed(), "none");
  oh_reclaim_wake();
  EXPECT(reclaims(0), "for good");
}
static void no_threads(void)
{
  int status;
  if (OH_SBRK) return;
  in_child(NULL, with_a_keeper);
  in_child(NULL, without_a_keeper);
  pid_t child = fork();
  if (child == 0) _exit(!forbid_madvise());
  EXPECT(child > 0 && waitpid(child, &status, 0) == child, "child");
  if (!TRY_SANITIZED && status == 0) in_child(NULL, without_threads);
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  TRY(zone);
  TRY(occupied);
  TRY(memory);
  TRY(no_madvise);
  TRY(no_threads);
  return try_end();
}
