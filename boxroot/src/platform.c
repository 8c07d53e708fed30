/* SPDX-License-Identifier: MIT */
#include "platform.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

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

void bxr_os_decommit(void *start, size_t size)
{
  int error = errno;
  (void)madvise(start, size, MADV_DONTNEED); /* cannot fail for private memory of ours */
  errno = error;
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

#pragma weak dladdr /* in a library of its own on older systems, which nobody has to link for our sake */
extern int backtrace(void **, int) __attribute__((weak)); /* not in every C library */

int bxr_os_stack(void **addresses, int most) { return backtrace == NULL ? 0 : backtrace(addresses, most); }

void bxr_os_describe_code(void const *p, char *text, size_t size)
{
  Dl_info info = { 0 };
  if (dladdr == NULL || dladdr(p, &info) == 0 || info.dli_fname == NULL) snprintf(text, size, "address %p", p);
  else if (info.dli_sname == NULL)
    snprintf(text, size, "%s(+0x%zx) [%p]", info.dli_fname, (size_t)((char const *)p - (char const *)info.dli_fbase), p);
  else
    snprintf(text, size, "%s in %s(+0x%zx) [%p]", info.dli_sname, info.dli_fname,
             (size_t)((char const *)p - (char const *)info.dli_fbase), p);
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
