/* SPDX-License-Identifier: MIT */
#include "platform.h"
#include "atomic.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <time.h>
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
  if (p != NULL && outheap_allocate == NULL && mprotect(p, size, PROT_READ | PROT_WRITE) != 0) {
    munmap(p, size);
    p = NULL;
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

#ifdef __linux__
static __thread struct { uintptr_t low, size; } own_stack; /* size 0: not known */

static void ask_for_stack(void)
{
  pthread_attr_t attr;
  void *low;
  size_t size;
  int error = errno;
  if (pthread_getattr_np(pthread_self(), &attr) == 0) {
    if (pthread_attr_getstack(&attr, &low, &size) == 0) {
      own_stack.low = (uintptr_t)low;
      own_stack.size = size;
    }
    pthread_attr_destroy(&attr);
  }
  errno = error;
}

static bool on_known_stack(void const *p) { return (uintptr_t)p - own_stack.low < own_stack.size; }

bxr_os_answer bxr_os_on_this_stack(void const *p)
{
  /* At first, and when the limit of its size was raised. */
  if (!on_known_stack(__builtin_frame_address(0))) ask_for_stack();
  return own_stack.size == 0 ? BXR_OS_UNKNOWN : on_known_stack(p) ? BXR_OS_YES : BXR_OS_NO;
}

long bxr_os_thread(void) { return syscall(SYS_gettid); }
bool bxr_os_is_first_thread(void) { return syscall(SYS_gettid) == getpid(); }

/* Processor time in ns; -1 when there is no such thread. */
static int64_t time_used_by(long thread)
{
  enum { THREADS_OWN = 4, AS_SCHEDULED = 2 }; /* the kernel's encoding of the clock that pthread_getcpuclockid gives */
  struct timespec t;
  clockid_t clock = (clockid_t)(~(unsigned long)thread << 3 | THREADS_OWN | AS_SCHEDULED);
  return clock_gettime(clock, &t) == 0 ? (int64_t)t.tv_sec * 1000000000 + t.tv_nsec : -1;
}

/* The letter by which the kernel tells what the thread does: R runs or is ready to, S sleeps until something happens;
   0: not known. */
static char kernel_state(long thread)
{
  char text[256], *p;
  snprintf(text, sizeof text, "/proc/self/task/%ld/stat", thread);
  int f = open(text, O_RDONLY | O_CLOEXEC);
  if (f < 0) return 0;
  ssize_t n = read(f, text, sizeof text - 1);
  close(f);
  text[n < 0 ? 0 : n] = 0;
  p = strrchr(text, ')'); /* after the name, which can hold anything */
  return p != NULL && p[1] == ' ' ? p[2] : 0;
}

void bxr_os_await_progress(long thread, bool const *ended)
{
  enum { BRIEFLY = 40, PROGRESS = 100000 /* ns */, PAUSE = 50000 /* ns */ };
  enum { LONG = 1000000000 / PAUSE, SHORT = 20000000 / PAUSE };
  for (int i = 0; i < BRIEFLY; i++) { /* the end of a thread is near as a rule */
    if (bxr_load_acquire(ended)) return;
    sched_yield();
  }
  int error = errno;
  int64_t from = time_used_by(thread);
  for (int i = 0; i < LONG && !bxr_load_acquire(ended); i++) {
    int64_t now = time_used_by(thread);
    if (now < 0 || now - from > PROGRESS) break;
    char state = kernel_state(thread);
    if (state == 'S' || state == 'Z' || state == 'X' || (state == 0 && i > SHORT)) break;
    struct timespec t = { 0, PAUSE };
    nanosleep(&t, NULL);
  }
  errno = error;
}
#else
bxr_os_answer bxr_os_on_this_stack(void const *p) { (void)p; return BXR_OS_UNKNOWN; }
long bxr_os_thread(void) { return 0; }
bool bxr_os_is_first_thread(void) { return false; }

void bxr_os_await_progress(long thread, bool const *ended)
{
  (void)thread;
  for (int i = 0; i < 400 && !bxr_load_acquire(ended); i++) {
    struct timespec t = { 0, 50000 };
    nanosleep(&t, NULL);
  }
}
#endif

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
