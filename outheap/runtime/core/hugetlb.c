/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "hugetlb.h"
#include "os.h"
#include "os_faults.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#if defined __linux__ && !OH_SBRK && defined MAP_HUGETLB && OH_PAGE_LOG >= 21

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#define HUGE_LOG 21
#define HUGE ((size_t)1 << HUGE_LOG)
#define FLAGS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | HUGE_LOG << 26 /* MAP_HUGE_SHIFT */)
#define STEP ((size_t)64 << 20) /* what a child copies at a time */

/* Complete pages of the pool somewhere; NULL: none. */
static void *take(size_t bytes)
{
  void *p = oh_os_fails() ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, FLAGS, -1, 0);
  if (p == MAP_FAILED) return NULL;
  if (madvise(p, bytes, MADV_POPULATE_WRITE) == 0) return p;
  munmap(p, bytes);
  return NULL;
}

static bool move(void *from, size_t bytes, void *to)
{
  return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
}

/* Can such pages be moved? Before Linux 5.16 the attempt leaves a hole, so it is made once, elsewhere. */
static bool can_move(void)
{
  char *place = mmap(NULL, 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return false;
  void *to = (void *)OH_ROUND_UP((uintptr_t)place, HUGE), *page = take(HUGE);
  bool can = page != NULL && move(page, HUGE, to);
  if (page != NULL && !can) munmap(page, HUGE);
  munmap(place, 2 * HUGE);
  return can;
}

bool oh_hugetlb_commit(void *start, size_t bytes)
{
  /* Two threads may find it out at a time, and find the same, or one that the pool is empty for a moment. */
  static int known; /* 0: not yet; 1: no; 2: yes */
  int error = errno, k = oh_load_relaxed(&known);
  if (k == 0) oh_store_relaxed(&known, k = can_move() ? 2 : 1);
  void *p = k == 2 ? take(bytes) : NULL;
  bool done = p != NULL && move(p, bytes, start);
  if (p != NULL && !done) munmap(p, bytes);
  errno = error;
  return done;
}

bool oh_hugetlb_replace(void *start, size_t bytes)
{
  int error = errno;
  bool done = !oh_os_fails() && mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                                     0) == start;
  errno = error;
  return done;
}

/* --- fork --------------------------------------------------------------------------------------------------------- */

static int ends[2] = { -1, -1 }; /* of a pipe; with the locks of all spaces */

bool oh_hugetlb_before_fork(void)
{
  int error = errno;
  bool made = pipe2(ends, O_CLOEXEC) == 0;
  if (!made) ends[0] = ends[1] = -1;
  errno = error;
  return made;
}

static void close_end(int i)
{
  if (ends[i] >= 0) close(ends[i]);
  ends[i] = -1;
}

void oh_hugetlb_wait(void)
{
  char byte;
  int error = errno;
  close_end(1); /* if there is no child, or it has died, the end of the pipe is read */
  while (ends[0] >= 0 && read(ends[0], &byte, 1) < 0 && errno == EINTR) {}
  close_end(0);
  errno = error;
}

void oh_hugetlb_copied(void)
{
  int error = errno;
  /* Before the other end is closed: the parent may have been killed, and a pipe without a reader ends who writes. */
  if (ends[1] >= 0) (void)oh_log_write(ends[1], "", 1);
  close_end(0);
  close_end(1);
  errno = error;
}

void oh_hugetlb_copy(void *start, size_t bytes)
{
  for (char *from = start, *end = from + bytes; from < end;) {
    size_t n = (size_t)(end - from) < STEP ? (size_t)(end - from) : STEP;
    /* Aligned, so that it can be in transparent huge pages. */
    char *p = mmap(NULL, n + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) oh_log_abort("the child of a fork has no memory for its copy of the heap's huge pages");
    char *to = (char *)OH_ROUND_UP((uintptr_t)p, HUGE);
    (void)oh_os_advise_huge(to, n, true);
    memcpy(to, from, n);
    if (!move(to, n, from)) oh_log_abort("the child of a fork cannot replace the heap's huge pages");
    if (to != p) munmap(p, (size_t)(to - p));
    munmap(to + n, (size_t)(p + HUGE - to));
    from += n;
  }
}

#else

bool oh_hugetlb_commit(void *start, size_t bytes) { return (void)start, (void)bytes, false; }
bool oh_hugetlb_replace(void *start, size_t bytes) { return (void)start, (void)bytes, false; }
bool oh_hugetlb_before_fork(void) { return false; }
void oh_hugetlb_wait(void) {}
void oh_hugetlb_copied(void) {}
void oh_hugetlb_copy(void *start, size_t bytes) { (void)start, (void)bytes; }

#endif
