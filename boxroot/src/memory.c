/* SPDX-License-Identifier: MIT */
#include "memory.h"
#include "atomic.h"
#include <sys/mman.h>
#include <unistd.h>

/* The runtime variant `_outheap` follows pointers only into memory that it gave out for that, so pools come from it
   where it is linked. Boxroot does not need its header; where it is there (in tools/lint, for one), the declarations
   below must agree with it. */
enum { FOLLOWED_KIND = 1, LARGE_PAGE = 1 << 21 };
extern void *outheap_allocate(unsigned kind, size_t bytes) __attribute__((weak));
#if defined(__has_include)
#if __has_include(<outheap.h>)
#include <outheap.h>
_Static_assert((int)FOLLOWED_KIND == (int)OUTHEAP_MAJOR, "the kind of memory that the marker follows");
#endif
#endif

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

/* Address space comes in extents that hold several regions, so that these are neighbours: the system then describes
   them by one mapping. */
enum { EXTENT = 1 << 25 };
static char *rest_of_extent; /* the part that no region uses yet (atomic) */

static void *take_extent(size_t *size)
{
  if (outheap_allocate != NULL) {
    *size = LARGE_PAGE;
    return outheap_allocate((unsigned)FOLLOWED_KIND, LARGE_PAGE);
  }
  void *p = map_aligned(EXTENT);
  if (p != NULL) *size = EXTENT;
  else p = map_aligned(*size); /* there may be a limit */
  return p;
}

void *bxr_memory_reserve(size_t size)
{
  char *p = __atomic_exchange_n(&rest_of_extent, NULL, __ATOMIC_ACQ_REL);
  size_t extent = outheap_allocate != NULL ? LARGE_PAGE : EXTENT;
  size_t rest = (size_t)(-(uintptr_t)p & (extent - 1)); /* from here to the end of the extent */
  if (p == NULL) {
    rest = size;
    p = take_extent(&rest);
  }
  /* If another thread has put its own there meanwhile, ours stays unused: address space without memory. */
  char *none = NULL;
  if (p != NULL && rest > size)
    __atomic_compare_exchange_n(&rest_of_extent, &none, p + size, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  if (p != NULL && outheap_allocate == NULL && mprotect(p, size, PROT_READ | PROT_WRITE) != 0) {
    munmap(p, size);
    p = NULL;
  }
  if (p == NULL) errno = ENOMEM;
  return p;
}

bool bxr_memory_purge(void *start, size_t size)
{
  int error = errno;
  bool given = madvise(start, size, MADV_DONTNEED) == 0;
  errno = error;
  return given;
}

size_t bxr_memory_page_size(void)
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

void *bxr_memory_map(size_t size)
{
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

void bxr_memory_unmap(void *start, size_t size)
{
  if (outheap_allocate != NULL) return; /* part of a larger page */
  (void)munmap(start, size);
}

void bxr_memory_release(void)
{
  char *p = __atomic_exchange_n(&rest_of_extent, NULL, __ATOMIC_ACQ_REL);
  size_t rest = (size_t)(-(uintptr_t)p & ((size_t)EXTENT - 1));
  if (rest != 0) bxr_memory_unmap(p, rest);
}
