/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "os.h"
#include "base.h"
#include "os_faults.h"
#include "proc.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>
#ifndef __wasm__
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#endif
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#endif

#ifndef MAP_FIXED_NOREPLACE
#ifdef __linux__
#define MAP_FIXED_NOREPLACE 0x100000
#else
#define MAP_FIXED_NOREPLACE 0
#endif
#endif

#ifdef OH_FAULTS
long oh_os_fail_after;
void (*oh_os_reserved)(uintptr_t base, size_t bytes);
void (*oh_os_purging)(void);
bool oh_os_strict;
static bool forced_strict(void) { return oh_load_relaxed(&oh_os_strict); }
#else
static bool forced_strict(void) { return false; }
#endif

/* --- memory: with OH_SBRK in os_sbrk.c ---------------------------------------------------------------------------- */

#if !OH_SBRK
/* What is inaccessible costs no memory, and is not counted by the system as memory that it may have to find. */
static uintptr_t map(uintptr_t hint, size_t bytes, int protection, int flags)
{
  if (oh_os_fails()) return 0;
  void *p = mmap((void *)hint, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return p == MAP_FAILED ? 0 : (uintptr_t)p;
}

bool oh_os_reserve_at(uintptr_t base, size_t bytes)
{
  uintptr_t p = base == 0 ? 0 : map(base, bytes, PROT_NONE, MAP_FIXED_NOREPLACE);
  if (p == base && p != 0) {
    oh_os_tell_reserved(base, bytes);
    return true;
  }
  if (p != 0) { /* an old kernel, which takes the address for a hint */
    munmap((void *)p, bytes);
    errno = EEXIST;
  }
  return false;
}

uintptr_t oh_os_reserve(size_t bytes, size_t alignment, uintptr_t limit)
{
  if (bytes == 0 || bytes > limit || bytes + alignment < bytes) return 0;
  /* Aligned by chance, or after a step down: the system goes downwards, so there is room. Needs no more than what is
     asked for. */
  uintptr_t p = map(0, bytes, PROT_NONE, 0);
  if (p == 0) return 0;
  if (p % alignment == 0 && p + bytes <= limit) {
    oh_os_tell_reserved(p, bytes);
    return p;
  }
  munmap((void *)p, bytes);
  uintptr_t down = OH_ROUND_DOWN(p, alignment);
  for (int i = 0; i < 2 && down <= limit - bytes; i++, down -= alignment)
    if (oh_os_reserve_at(down, bytes)) return down;
  /* Too much, cut to measure. */
  p = map(0, bytes + alignment, PROT_NONE, 0);
  if (p != 0) {
    uintptr_t start = OH_ROUND_UP(p, alignment), end = p + bytes + alignment;
    if (start + bytes <= limit) {
      if (start != p) munmap((void *)p, start - p);
      if (start + bytes != end) munmap((void *)(start + bytes), end - start - bytes);
      oh_os_tell_reserved(start, bytes);
      return start;
    }
    munmap((void *)p, bytes + alignment);
  }
  /* The system's own choice lies beyond the limit: some places below. */
  for (uintptr_t i = 0; i < 64; i++) {
    p = OH_ROUND_UP(limit / 4 + i * (limit / 128), alignment);
    if (p <= limit - bytes && oh_os_reserve_at(p, bytes)) return p;
  }
  return 0;
}

uintptr_t oh_os_map(size_t bytes) { return map(0, bytes, PROT_READ | PROT_WRITE, 0); }

void oh_os_release(uintptr_t base, size_t bytes) { munmap((void *)base, bytes); }

bool oh_os_would_commit(size_t bytes)
{
  uintptr_t p = map(0, bytes, PROT_READ | PROT_WRITE, 0);
  if (p != 0) munmap((void *)p, bytes);
  return p != 0;
}

bool oh_os_commit(void *start, size_t bytes)
{
  return !oh_os_fails() && mprotect(start, bytes, PROT_READ | PROT_WRITE) == 0;
}

#ifdef __linux__
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24 /* Linux 5.18 */
#endif
/* For memory that mlockall has locked. It stays so: pages are locked when they are touched again. */
static bool purge_locked(void *start, size_t bytes)
{
  if (madvise(start, bytes, MADV_DONTNEED_LOCKED) == 0) return true;
  if (munlock(start, bytes) != 0) return false;
  bool done = madvise(start, bytes, MADV_DONTNEED) == 0;
#ifdef SYS_mlock2
  (void)syscall(SYS_mlock2, start, bytes, 1 /* on fault */);
#endif
  return done;
}
#endif

static bool map_anew(void *start, size_t bytes)
{
  return mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == start;
}

bool oh_os_purge(void *start, size_t bytes)
{
  int error = errno;
  oh_os_tell_purging();
#ifdef __linux__
  bool done = !oh_os_fails() && (madvise(start, bytes, MADV_DONTNEED) == 0 ||
                                 (errno == EINVAL && purge_locked(start, bytes)) ||
                                 /* a sandbox that knows no madvise */
                                 ((errno == EPERM || errno == ENOSYS || errno == EACCES) && map_anew(start, bytes)));
#else
  bool done = !oh_os_fails() && map_anew(start, bytes);
#endif
  errno = error;
  return done;
}

bool oh_os_uncommit(void *start, size_t bytes)
{
  int error = errno;
  oh_os_tell_purging();
  bool done =
    !oh_os_fails() && mmap(start, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == start;
  errno = error;
  return done;
}

#if defined MADV_HUGEPAGE && defined MADV_NOHUGEPAGE
bool oh_os_advise_huge(void *start, size_t bytes, bool wanted)
{
  static int known; /* 1 + the mode */
  int error = errno, k = oh_load_relaxed(&known);
  if (k == 0) oh_store_relaxed(&known, k = 1 + (int)oh_proc_thp());
  enum oh_proc_thp m = (enum oh_proc_thp)(k - 1);
  bool advised = (wanted ? m != OH_PROC_THP_NONE && m != OH_PROC_THP_NEVER : m == OH_PROC_THP_ALWAYS) &&
                 madvise(start, bytes, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) == 0;
  errno = error;
  return advised;
}

bool oh_os_refuse_huge(void *start, size_t bytes)
{
  int error = errno;
  bool done = madvise(start, bytes, MADV_NOHUGEPAGE) == 0;
  errno = error;
  return done;
}
#else
bool oh_os_refuse_huge(void *start, size_t bytes) { return (void)start, (void)bytes, false; }
bool oh_os_advise_huge(void *start, size_t bytes, bool wanted) { return (void)start, (void)bytes, (void)wanted, false; }
#endif

#endif /* !OH_SBRK */

/* --- images ------------------------------------------------------------------------------------------------------- */

#if defined __linux__ || defined __FreeBSD__
struct search { uintptr_t address, begin, end; };

static int search_image(struct dl_phdr_info *info, size_t size, void *data)
{
  struct search *s = data;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    uintptr_t begin = (uintptr_t)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr,
              end = begin + info->dlpi_phdr[i].p_memsz;
    if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_R) || s->address < begin ||
        s->address >= end)
      continue;
    s->begin = OH_ROUND_UP(begin, sizeof(void *));
    s->end = OH_ROUND_DOWN(end, sizeof(void *));
    return s->begin < s->end;
  }
  return 0;
}

bool oh_os_image(uintptr_t address, uintptr_t *begin, uintptr_t *end)
{
  struct search s = { address, 0, 0 };
  bool found = dl_iterate_phdr(search_image, &s) == 1;
  if (found) *begin = s.begin, *end = s.end;
  return found;
}
#else
bool oh_os_image(uintptr_t address, uintptr_t *begin, uintptr_t *end)
{
  return (void)address, (void)begin, (void)end, false;
}
#endif

#ifdef __linux__
static int add_thread_local(struct dl_phdr_info *info, size_t size, void *sum)
{
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_TLS)
      *(size_t *)sum += (size_t)info->dlpi_phdr[i].p_memsz + (size_t)info->dlpi_phdr[i].p_align;
  return 0;
}

size_t oh_os_thread_local(void)
{
  size_t sum = 0;
  dl_iterate_phdr(add_thread_local, &sum);
  return sum;
}
#else
size_t oh_os_thread_local(void) { return 0; }
#endif

/* --- the process -------------------------------------------------------------------------------------------------- */

bool oh_os_is_strict(void)
{
  static int known; /* 0: not yet; 1: no; 2: yes */
  int k = oh_load_relaxed(&known);
  if (k == 0) oh_store_relaxed(&known, k = oh_proc_is_strict() ? 2 : 1);
  return k == 2 || forced_strict();
}

#if !OH_SBRK
int malloc_trim(size_t) __attribute__((weak)); /* of glibc */
#endif

void oh_os_trim_malloc(void)
{
#if !OH_SBRK
  if (malloc_trim != NULL) (void)malloc_trim(0);
#endif
}

size_t oh_os_page_size(void)
{
  static size_t page;
  size_t p = oh_load_relaxed(&page);
  if (p == 0) oh_store_relaxed(&page, p = (size_t)sysconf(_SC_PAGESIZE));
  return p;
}

size_t oh_os_physical(void)
{
  long pages = sysconf(_SC_PHYS_PAGES);
  return pages > 0 ? (size_t)pages * oh_os_page_size() : SIZE_MAX;
}

size_t oh_os_peak(void)
{
#ifdef __linux__
  struct rusage r;
  if (getrusage(RUSAGE_SELF, &r) == 0 && r.ru_maxrss > 0) return (size_t)r.ru_maxrss << 10;
#endif
  return 0; /* other systems have other units, or none */
}

uintptr_t oh_os_random(void)
{
  uintptr_t r = 0;
#ifdef __linux__
  int persona = personality(0xffffffff);
  if (persona != -1 && (persona & ADDR_NO_RANDOMIZE)) return 0;
#ifdef SYS_getrandom
  if (syscall(SYS_getrandom, &r, sizeof r, 1 /* do not wait */) == (long)sizeof r) return r;
#endif
#endif
  struct timespec now = { 0, 0 };
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (r ^ (uintptr_t)now.tv_nsec ^ (uintptr_t)getpid() << 20 ^ (uintptr_t)&r >> 4) * (uintptr_t)0x9E3779B97F4A7C15;
}

void oh_os_yield(void) { sched_yield(); }

unsigned oh_os_processors(void)
{
#ifdef __linux__
  cpu_set_t set[8]; /* 8,192, as many as Linux knows; it refuses room for fewer than the machine may have */
  if (sched_getaffinity(0, sizeof set, set) == 0) return (unsigned)CPU_COUNT_S(sizeof set, set);
#endif
  return 1;
}

#ifdef __linux__
bool oh_os_is_privileged(void) { return getauxval(AT_SECURE) != 0; }
#else
bool oh_os_is_privileged(void) { return false; }
#endif

uintptr_t oh_os_stack(void)
{
  uintptr_t stack = 0;
#ifdef __linux__
  stack = getauxval(AT_RANDOM); /* the system has put these bytes there */
#endif
  if (stack == 0) stack = (uintptr_t)&stack;
  return stack;
}

#ifdef __wasm__
long oh_os_process(void) { return 1; }
long oh_os_parent(void) { return 0; }
bool oh_os_has_children(void) { return false; }
size_t oh_os_address_limit(void) { return SIZE_MAX; }
#else
long oh_os_process(void) { return (long)getpid(); }
long oh_os_parent(void) { return (long)getppid(); }
bool oh_os_has_children(void)
{
  siginfo_t child;
  int error = errno;
  bool none = waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
  errno = error;
  return !none;
}
size_t oh_os_address_limit(void)
{
  struct rlimit l;
  return getrlimit(RLIMIT_AS, &l) != 0 || l.rlim_cur == RLIM_INFINITY || l.rlim_cur > SIZE_MAX ? SIZE_MAX
                                                                                               : (size_t)l.rlim_cur;
}
#endif

/* --- memory for records ------------------------------------------------------------------------------------------- */

#define BATCH ((size_t)128 << 10)
#define LINE ((size_t)64)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t next, end; /* the rest of the current batch */

static bool new_batch(size_t bytes)
{
  OH_ASSERT_LOCKED(&mutex);
  for (size_t size = BATCH; size >= bytes; size /= 2) {
    uintptr_t p = oh_os_map(size);
    if (p == 0) continue;
    next = p;
    end = p + size;
    return true;
  }
  return false;
}

void *oh_metadata_alloc(size_t bytes)
{
  if (bytes == 0 || bytes > SIZE_MAX / 2) return NULL;
  bytes = OH_ROUND_UP(bytes, LINE);
  if (bytes > BATCH / 4) return (void *)oh_os_map(OH_ROUND_UP(bytes, oh_os_page_size()));
  pthread_mutex_lock(&mutex);
  void *p = NULL;
  if (end - next >= bytes || new_batch(OH_ROUND_UP(bytes, oh_os_page_size()))) {
    p = (void *)next;
    next += bytes;
  }
  pthread_mutex_unlock(&mutex);
  return p;
}

void oh_metadata_lock(void)
{
  pthread_mutex_lock(&mutex);
  oh_os_lock();
}

void oh_metadata_unlock(void)
{
  oh_os_unlock();
  pthread_mutex_unlock(&mutex);
}
