/* SPDX-License-Identifier: MIT */
#include "platform.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The runtime variant `_outheap` (../../outheap) follows pointers only into memory that it gave out for that; a pool anywhere else would be foreign to it. */
enum { outheap_major = 1, outheap_page = 1 << 21 };
extern void *outheap_allocate(int kind, size_t bytes) __attribute__((weak));

static void *map(size_t size)
{
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

/* `size` bytes aligned on their size, without access. */
static void *map_aligned(size_t size)
{
  char *p = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return NULL;
  size_t before = -(uintptr_t)p & (size - 1);
  if (before != 0) munmap(p, before);
  munmap(p + before + size, size - before);
  return p + before;
}

/* Address space comes in pieces that hold several regions, so that these lie side by side: the system then describes them by one mapping. */
enum { mapped_piece = 1 << 25 };
static char *left; /* the unused rest of a piece (atomic) */

static void *take_piece(size_t *size)
{
  if (outheap_allocate != NULL) {
    *size = outheap_page;
    return outheap_allocate(outheap_major, outheap_page);
  }
  void *p = map_aligned(mapped_piece);
  if (p != NULL) *size = mapped_piece;
  else p = map_aligned(*size); /* there may be a limit */
  return p;
}

void *bxr_os_reserve(size_t size)
{
  char *p = __atomic_exchange_n(&left, NULL, __ATOMIC_ACQ_REL);
  size_t piece = outheap_allocate != NULL ? outheap_page : mapped_piece;
  size_t rest = (size_t)(-(uintptr_t)p & (piece - 1)); /* from here to the end of the piece */
  if (p == NULL) {
    rest = size;
    p = take_piece(&rest);
  }
  /* If another thread has put its own there meanwhile, ours is left unused: address space without memory. */
  char *none = NULL;
  if (p != NULL && rest > size) __atomic_compare_exchange_n(&left, &none, p + size, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  if (p != NULL && outheap_allocate == NULL && mprotect(p, size, PROT_READ | PROT_WRITE) != 0) p = NULL;
  if (p == NULL) errno = ENOMEM;
  return p;
}

bool bxr_os_decommit(void *start, size_t size)
{
  int error = errno;
  bool given = madvise(start, size, MADV_DONTNEED) == 0;
  errno = error;
  return given;
}

size_t bxr_os_page_size(void)
{
  static size_t size; /* (atomic) */
  size_t known = __atomic_load_n(&size, __ATOMIC_RELAXED);
  if (known == 0) {
    long n = sysconf(_SC_PAGESIZE);
    known = n > 0 ? (size_t)n : 65536;
    __atomic_store_n(&size, known, __ATOMIC_RELAXED);
  }
  return known;
}

void *bxr_os_map(size_t size) { return map(size); }

void bxr_os_unmap(void *start, size_t size)
{
  if (outheap_allocate != NULL) return; /* part of a larger page */
  (void)munmap(start, size);
}

void bxr_os_yield(void) { sched_yield(); }

bool bxr_os_on_this_stack(void const *p)
{
#ifdef __linux__
  pthread_attr_t attr;
  void *low;
  size_t size;
  if (pthread_getattr_np(pthread_self(), &attr) != 0) return false;
  bool known = pthread_attr_getstack(&attr, &low, &size) == 0;
  pthread_attr_destroy(&attr);
  return known && (uintptr_t)p - (uintptr_t)low < size;
#else
  (void)p;
  return false;
#endif
}

void bxr_fault(char const *format, ...)
{
  va_list args;
  va_start(args, format);
  fputs("boxroot: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  abort();
}
