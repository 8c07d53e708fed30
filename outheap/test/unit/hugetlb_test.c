/* SPDX-License-Identifier: MIT */
/* Huge pages of the system's pool: what is in them, what goes back, what is said when there are none, and forks while
   the pool is empty. Root's tests fill the pool for as long as they last; others need one of 24 pages. */
#define _GNU_SOURCE /* for mremap */
#include "hugetlb.h"
#include "limit.h"
#include "os.h"
#include "settings.h"
#include "space_memory.h"
#include "start.h"
#include "try_child.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define POOL "/proc/sys/vm/nr_hugepages"
#define PAGES_LEAST 24

/* --- the pool ----------------------------------------------------------------------------------------------------- */

static size_t number_of(char const *file, char const *word)
{
  char line[256];
  size_t n = 0;
  FILE *f = fopen(file, "r");
  while (f != NULL && fgets(line, sizeof line, f) != NULL)
    if (strncmp(line, word, strlen(word)) == 0) n = strtoull(line + strlen(word), NULL, 10);
  if (f != NULL) fclose(f);
  return n;
}
static size_t free_pages(void) { return number_of("/proc/meminfo", "HugePages_Free:"); }

static void set_pool(size_t pages)
{
  FILE *f = fopen(POOL, "w");
  if (f == NULL) return;
  fprintf(f, "%zu\n", pages);
  fclose(f);
}

static size_t pool_before;
static bool pool_changed;
static void restore_pool(void)
{
  if (pool_changed) set_pool(pool_before);
}

/* Does the system fill such a page and move it, as hugetlb.h wants? Not before Linux 5.16, nor in an emulator. */
static bool moves_pages(void)
{
  char *place = mmap(NULL, 4 * M, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char *page = mmap(NULL, 2 * M, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (place == MAP_FAILED || page == MAP_FAILED) return false;
  char *to = (char *)OH_ROUND_UP((uintptr_t)place, (size_t)2 * M);
  bool moves = madvise(page, 2 * M, 23 /* MADV_POPULATE_WRITE */) == 0 &&
               mremap(page, 2 * M, 2 * M, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
  if (!moves) munmap(page, 2 * M);
  munmap(place, 4 * M);
  return moves;
}

/* One test at a time has the pool. Ends the program if there is none. */
static void fill_pool(void)
{
  int f = open(POOL, O_RDONLY | O_CLOEXEC);
  bool alone = !TRY_SANITIZED && !OH_SBRK && OH_PAGE == 2 * M && f >= 0 && flock(f, LOCK_EX) == 0;
  pool_before = number_of(POOL, "");
  if (alone && free_pages() < PAGES_LEAST) {
    pool_changed = true;
    set_pool(pool_before + PAGES_LEAST);
  }
  if (alone && free_pages() >= PAGES_LEAST && moves_pages()) return;
  restore_pool();
  puts("skipped: no pool of huge pages, or none of this size, or they cannot be moved");
  exit(77);
}

/* --- in a child --------------------------------------------------------------------------------------------------- */

static bool in_huge_page(void const *p)
{
  char line[256];
  bool here = false, huge = false;
  FILE *f = fopen("/proc/self/smaps", "r");
  while (f != NULL && fgets(line, sizeof line, f) != NULL) {
    unsigned long from, to;
    if (sscanf(line, "%lx-%lx ", &from, &to) == 2) here = from <= (uintptr_t)p && (uintptr_t)p < to;
    else if (here && strncmp(line, "KernelPageSize:", 15) == 0) huge = strtoul(line + 15, NULL, 10) == 2048;
  }
  if (f != NULL) fclose(f);
  return huge;
}

static bool is_filled(char const *p, size_t bytes, char with)
{
  for (size_t i = 0; i < bytes; i++)
    if (p[i] != with) return false;
  return true;
}

static void pages(void)
{
  oh_start();
  size_t before = free_pages();
  char *p = oh_space_alloc(OH_SPACE_BLOCKS, 4 * OH_PAGE, true, NULL);
  EXPECT(p != NULL && in_huge_page(p) && in_huge_page(p + 4 * OH_PAGE - 1), "in pages of the pool");
  EXPECT(oh_space_memory_hugetlb() == 4 * OH_PAGE, "%zu", oh_space_memory_hugetlb());
  EXPECT(free_pages() == before - 4, "taken at once: %zu of %zu are left", free_pages(), before);
  EXPECT(oh_limit_used() >= 4 * OH_PAGE, "a limit counts them: %zu", oh_limit_used());
  EXPECT(is_filled(p, 4 * OH_PAGE, 0), "zeroes");
  char *m = oh_space_alloc(OH_SPACE_MARKED, OH_PAGE, true, NULL);
  EXPECT(m != NULL && !in_huge_page(m), "where thp= is off there are none");

  memset(p, 'a', 4 * OH_PAGE);
  oh_space_purge(OH_SPACE_BLOCKS, p + 4096, 8192); /* less than a page stays */
  EXPECT(is_filled(p + 4096, 8192, 0) && p[4095] == 'a' && p[4096 + 8192] == 'a' && in_huge_page(p), "a part");
  oh_space_purge(OH_SPACE_BLOCKS, p + OH_PAGE, OH_PAGE + 4096);
  EXPECT(is_filled(p + OH_PAGE, OH_PAGE + 4096, 0) && p[OH_PAGE - 1] == 'a' && p[2 * OH_PAGE + 4096] == 'a', "one");
  EXPECT(!in_huge_page(p + OH_PAGE) && in_huge_page(p + 2 * OH_PAGE), "a whole page goes back");
  EXPECT(free_pages() == before - 3 && oh_space_memory_hugetlb() == 3 * OH_PAGE, "%zu", free_pages());
  oh_space_validate();

  oh_space_free(OH_SPACE_BLOCKS, p, 4 * OH_PAGE);
  oh_space_trim(OH_SPACE_BLOCKS);
  EXPECT(free_pages() == before && oh_space_memory_hugetlb() == 0, "all is back: %zu", free_pages());
  bool fresh;
  p = oh_space_alloc(OH_SPACE_BLOCKS, 4 * OH_PAGE, true, &fresh);
  EXPECT(p != NULL && fresh && is_filled(p, 4 * OH_PAGE, 0) && in_huge_page(p + OH_PAGE), "and taken again");
}
static void in_pages(void) { in_child("hugetlb=2M", pages); }

static void more_than_there_are(void)
{
  oh_start();
  size_t huge = free_pages() * OH_PAGE, bytes = huge + 2 * OH_PAGE;
  char *first = NULL;
  for (int i = 0; i < 2; i++) {
    char *p = oh_space_alloc(i == 0 ? OH_SPACE_BLOCKS : OH_SPACE_POOLS, bytes, true, NULL);
    EXPECT(p != NULL && !in_huge_page(p + bytes - OH_PAGE), "ordinary memory");
    for (size_t k = 0; k < bytes; k += OH_PAGE)
      EXPECT(in_huge_page(p + k) == (i == 0 && k < huge), "page %zu of %zu", k / OH_PAGE, bytes / OH_PAGE);
    memset(p, 'a', bytes);
    if (i != 0) continue;
    first = p;
    EXPECT(free_pages() == 0 && oh_space_memory_hugetlb() == huge, "the pool is used up");
    oh_space_validate();
  }
  oh_space_free(OH_SPACE_BLOCKS, first, bytes);
  oh_space_trim(OH_SPACE_BLOCKS);
  char *few = oh_space_alloc(OH_SPACE_BLOCKS, OH_PAGE, true, NULL);
  EXPECT(few != NULL && in_huge_page(few), "what has come back can be had again");
}
static void too_few(void)
{
  char const *text = try_said("hugetlb=2M", more_than_there_are);
  EXPECT(try_times(text, "vm.nr_hugepages") == 1, "said once: %s", text);
}

static void without(void)
{
  oh_start();
  char *p = oh_space_alloc(OH_SPACE_BLOCKS, 3 * OH_PAGE, false, NULL);
  oh_os_fail_after = 1; /* the first attempt to get one */
  for (char *q = p; q < p + 3 * OH_PAGE; q += OH_PAGE)
    EXPECT(p != NULL && oh_space_commit(OH_SPACE_BLOCKS, q, OH_PAGE) && !in_huge_page(q), "ordinary memory");
}
static void none(void)
{
  char const *text = try_said("hugetlb=2M", without);
  EXPECT(try_times(text, "vm.nr_hugepages") == 1, "said once: %s", text);
}

static void start(void)
{
  oh_start();
  EXPECT(!oh_settings.hugetlb, "refused");
}
static void pages_of_1G(void)
{
  char const *text = try_said("hugetlb=1G", start);
  EXPECT(strstr(text, "hugetlb has no pages of 1G") != NULL && strstr(text, "say 2M") != NULL, "%s", text);
}

/* --- forks -------------------------------------------------------------------------------------------------------- */

/* The pool is empty, so that no page can be copied within it. */
static void emptied(void)
{
  oh_start();
  size_t n = free_pages();
  char *p = oh_space_alloc(OH_SPACE_BLOCKS, n * OH_PAGE, true, NULL);
  EXPECT(p != NULL && in_huge_page(p) && free_pages() == 0, "%zu pages", n);
  memset(p, 'a', n * OH_PAGE);
  int status, go[2];
  EXPECT(pipe(go) == 0, "pipe");
  pid_t child = fork();
  EXPECT(child >= 0, "fork");
  if (child == 0) {
    char byte;
    if (read(go[0], &byte, 1) != 1) _exit(2); /* until the parent has written */
    if (!is_filled(p, n * OH_PAGE, 'a')) _exit(3);
    memset(p, 'c', n * OH_PAGE);
    oh_space_free(OH_SPACE_BLOCKS, p, n * OH_PAGE);
    oh_space_trim(OH_SPACE_BLOCKS);
    oh_space_validate();
    _exit(oh_space_memory_hugetlb() == 0 ? 0 : 4);
  }
  memset(p, 'p', n * OH_PAGE);
  EXPECT(write(go[1], "", 1) == 1, "go");
  EXPECT(waitpid(child, &status, 0) == child && status == 0, "child: %x", status);
  EXPECT(is_filled(p, n * OH_PAGE, 'p') && in_huge_page(p), "the parent's pages stay");
}
static void forks(void) { in_child("hugetlb=2M", emptied); }

/* A fork that fails has no child to wait for. */
static void refused_fork(void)
{
  oh_start();
  char *p = oh_space_alloc(OH_SPACE_BLOCKS, OH_PAGE, true, NULL);
  EXPECT(p != NULL && in_huge_page(p), "a page");
  struct rlimit least = { 0, 0 };
  if (setuid(65534) != 0 || setrlimit(RLIMIT_NPROC, &least) != 0) return;
  EXPECT(fork() == -1 && errno == EAGAIN, "refused");
  memset(p, 'a', OH_PAGE);
}
static void fails_to_fork(void) { in_child("hugetlb=2M", refused_fork); }

/* The parent is killed while the child copies: before this handler returns, which comes before the library's. */
static pid_t forks_then;
static void kill_parent(void)
{
  if (getppid() != forks_then || kill(forks_then, SIGKILL) != 0) _exit(5);
  while (getppid() == forks_then) usleep(1000);
}
static int told[2];
static void forsaken(void)
{
  EXPECT(pthread_atfork(NULL, NULL, kill_parent) == 0, "atfork");
  oh_start();
  char *p = oh_space_alloc(OH_SPACE_BLOCKS, 2 * OH_PAGE, true, NULL);
  EXPECT(p != NULL && in_huge_page(p), "a page");
  memset(p, 'a', 2 * OH_PAGE);
  forks_then = getpid();
  if (fork() == 0) _exit(is_filled(p, 2 * OH_PAGE, 'a') && write(told[1], "y", 1) == 1 ? 0 : 1);
  pause();
}
static void parent_is_killed(void)
{
  char byte = 'n';
  int status;
  EXPECT(pipe(told) == 0, "pipe");
  pid_t parent = fork();
  if (parent == 0) {
    setenv("OUTHEAP", "hugetlb=2M", 1);
    forsaken();
  }
  close(told[1]);
  EXPECT(parent > 0 && waitpid(parent, &status, 0) == parent && WIFSIGNALED(status), "the parent: %x", status);
  EXPECT(read(told[0], &byte, 1) == 1 && byte == 'y', "the child goes on");
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  if (!try_listing) {
    fill_pool();
    fflush(stdout);
    pid_t child = fork(); /* so that the pool is restored whatever happens there */
    int status = 1;
    EXPECT(child >= 0 && (child == 0 || waitpid(child, &status, 0) == child), "child");
    if (child != 0) {
      restore_pool();
      return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
  }
  TRY(in_pages);
  TRY(too_few);
  TRY(none);
  TRY(pages_of_1G);
  TRY(forks);
  TRY(fails_to_fork);
  TRY(parent_is_killed);
  return try_end();
}
