/* SPDX-License-Identifier: MIT */
/* Failing allocations. The library's object is linked with its calls of mmap, malloc and the like renamed to test_mmap
   … (objcopy --redefine-sym), so that its own requests for memory fail on demand and nobody else's. */
#include "../common/check.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_int armed;       /* 0: nothing fails; 1: the n-th fails; 2: all from the n-th on fail */
static atomic_long countdown;  /* requests until the n-th */
static atomic_long failures;

static _Bool fails(void)
{
  if (atomic_load(&armed) == 0) return 0;
  long left = atomic_fetch_sub(&countdown, 1) - 1;
  if (left == 0 || (left < 0 && atomic_load(&armed) == 2)) {
    atomic_fetch_add(&failures, 1);
    return 1;
  }
  return 0;
}

#define FAIL_WITH(result) do { if (fails()) { errno = ENOMEM; return (result); } } while (0)

void *test_mmap(void *a, size_t n, int prot, int flags, int fd, off_t o)
{
  FAIL_WITH(MAP_FAILED);
  return mmap(a, n, prot, flags, fd, o);
}
int test_mprotect(void *a, size_t n, int prot) { FAIL_WITH(-1); return mprotect(a, n, prot); }

/* A kernel with larger pages, as it would treat ours: lengths are rounded up, and addresses must be multiples. 0: this
   kernel. Or one that refuses, as for memory that is locked. */
static long page_size;
static _Bool refuses;
static atomic_long given, refused;
long test_sysconf(int name) { return name == _SC_PAGESIZE && page_size != 0 ? page_size : sysconf(name); }
int test_madvise(void *a, size_t n, int advice)
{
  FAIL_WITH(-1);
  if (refuses || (page_size != 0 && (uintptr_t)a % (size_t)page_size != 0)) {
    atomic_fetch_add(&refused, 1);
    errno = EINVAL;
    return -1;
  }
  if (page_size != 0) n = (n + (size_t)page_size - 1) / (size_t)page_size * (size_t)page_size;
  atomic_fetch_add(&given, (long)n);
  return madvise(a, n, advice);
}
value o_kernel(value size, value refuse)
{
  page_size = Long_val(size);
  refuses = Bool_val(refuse);
  return Val_unit;
}
value o_given(value unit) { (void)unit; return Val_long(atomic_load(&given)); }
void *test_malloc(size_t n) { FAIL_WITH(NULL); return malloc(n); }
void *test_calloc(size_t k, size_t n) { FAIL_WITH(NULL); return calloc(k, n); }
void *test_realloc(void *p, size_t n) { FAIL_WITH(NULL); return realloc(p, n); }
void *test_aligned_alloc(size_t a, size_t n) { FAIL_WITH(NULL); return aligned_alloc(a, n); }
int test_posix_memalign(void **p, size_t a, size_t n)
{
  if (fails()) return ENOMEM;
  return posix_memalign(p, a, n);
}

value o_arm(value mode, value n)
{
  atomic_store(&countdown, Long_val(n));
  atomic_store(&armed, Int_val(mode));
  return Val_unit;
}
value o_disarm(value unit) { (void)unit; atomic_store(&armed, 0); return Val_unit; }
/* Go on with what is left of the countdown. */
value o_rearm(value mode) { atomic_store(&armed, Int_val(mode)); return Val_unit; }
value o_failures(value unit) { (void)unit; return Val_long(atomic_load(&failures)); }

/* The error that a failing creation or modification must have set. */
value o_expect_enomem(value unit)
{
  (void)unit;
  CHECK(errno == ENOMEM, "errno is %d, not ENOMEM", errno);
  CHECK(boxroot_status() == BOXROOT_RUNNING || boxroot_status() == BOXROOT_NOT_SETUP,
        "status %d after a lack of memory", boxroot_status());
  char const *s = boxroot_error_string();
  CHECK(s != NULL && *s != 0 && strstr(s, "lock") == NULL && strstr(s, "teardown") == NULL, "error string %s", s);
  return Val_unit;
}
