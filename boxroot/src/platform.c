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

/* It gives large pages, which hold several regions: those not used yet, one behind the other. */
static void *outheap_reserve_region(size_t size)
{
  static char *left;
  char *p = __atomic_exchange_n(&left, NULL, __ATOMIC_ACQ_REL);
  size_t rest = (size_t)(-(uintptr_t)p & (outheap_page - 1)); /* from here to the end of the page */
  if (p == NULL && size <= outheap_page) { /* larger ones would not be aligned */
    p = outheap_allocate(outheap_major, outheap_page);
    rest = outheap_page;
  }
  /* If another thread has put its own there meanwhile, ours is left unused: address space without memory. */
  char *none = NULL;
  if (p != NULL && rest > size) __atomic_compare_exchange_n(&left, &none, p + size, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  return p;
}

static void *map(size_t size)
{
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

void *bxr_os_reserve(size_t size)
{
  if (outheap_allocate != NULL) {
    void *p = outheap_reserve_region(size);
    if (p == NULL) errno = ENOMEM;
    return p;
  }
  char *p = map(size); /* aligned already, when it lands next to an earlier one */
  if (p != NULL && ((uintptr_t)p & (size - 1)) != 0) {
    munmap(p, size);
    p = map(2 * size);
    if (p != NULL) {
      size_t before = -(uintptr_t)p & (size - 1);
      if (before != 0) munmap(p, before);
      munmap(p + before + size, size - before);
      p += before;
    }
  }
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
