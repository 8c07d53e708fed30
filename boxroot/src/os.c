/* SPDX-License-Identifier: MIT */
#include "os.h"
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#if defined(__linux__) || defined(__FreeBSD__)
#include <link.h>
#endif

/* --- memory ------------------------------------------------------------------------------------------------------- */

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

/* Maps `size` bytes, aligned on their size, without access. */
static void *map_aligned(size_t size)
{
  char *p = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return NULL;
  size_t before = -(uintptr_t)p & (size - 1);
  if (before != 0) munmap(p, before);
  munmap(p + before + size, size - before);
  return p + before;
}

/* Address space is taken in extents that hold several segments, so that these are neighbours: the system then describes
   them by one mapping. */
enum { EXTENT = 1 << 25 };
static char *rest_of_extent; /* where the part begins that no segment uses yet (atomic) */

static void *take_extent(size_t *size)
{
  if (outheap_allocate != NULL) {
    *size = LARGE_PAGE;
    return outheap_allocate((unsigned)FOLLOWED_KIND, LARGE_PAGE);
  }
  void *p = map_aligned(EXTENT);
  if (p != NULL) *size = EXTENT;
  else p = map_aligned(*size); /* there may be a limit on address space */
  return p;
}

void *bxr_memory_reserve(size_t size)
{
  char *p = bxr_exchange_acq_rel(&rest_of_extent, (char *)NULL);
  size_t extent = outheap_allocate != NULL ? LARGE_PAGE : EXTENT;
  size_t rest = (size_t)(-(uintptr_t)p & (extent - 1)); /* from here to the end of the extent */
  if (p == NULL) {
    rest = size;
    p = take_extent(&rest);
  }
  /* If another thread has put its own there meanwhile, ours stays unused: it is address space without memory. A strong
     compare-and-swap, which does not fail spuriously. */
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
  size_t known = bxr_load_relaxed(&size);
  if (known == 0) {
    long n = sysconf(_SC_PAGESIZE);
    known = n > 0 ? (size_t)n : 65536;
    bxr_store_relaxed(&size, known);
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
  if (outheap_allocate != NULL) return; /* it is part of a larger page */
  (void)munmap(start, size);
}

void bxr_memory_release(void)
{
  char *p = bxr_exchange_acq_rel(&rest_of_extent, (char *)NULL);
  size_t rest = (size_t)(-(uintptr_t)p & ((size_t)EXTENT - 1));
  if (rest != 0) bxr_memory_unmap(p, rest);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */


void bxr_thread_yield(void) { sched_yield(); }

#ifdef __linux__
static __thread struct { uintptr_t low, size; } own_stack; /* size 0: the bounds are not known */

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

bxr_thread_answer bxr_thread_stack_has(void const *p)
{
  /* The system is asked at first, and when the limit of the stack's size was raised. */
  if (!on_known_stack(__builtin_frame_address(0))) ask_for_stack();
  return own_stack.size == 0 ? BXR_THREAD_UNKNOWN : on_known_stack(p) ? BXR_THREAD_YES : BXR_THREAD_NO;
}

long bxr_thread_id(void) { return syscall(SYS_gettid); }
bool bxr_thread_is_first(void) { return syscall(SYS_gettid) == getpid(); }

/* The processor time that the thread has used, in ns; -1 when there is no such thread. */
static int64_t time_used_by(long thread)
{
  enum { THREADS_OWN = 4, AS_SCHEDULED = 2 }; /* the kernel's encoding of the clock that pthread_getcpuclockid gives */
  struct timespec t;
  clockid_t clock = (clockid_t)(~(unsigned long)thread << 3 | THREADS_OWN | AS_SCHEDULED);
  return clock_gettime(clock, &t) == 0 ? (int64_t)t.tv_sec * 1000000000 + t.tv_nsec : -1;
}

bool bxr_thread_is_there(long thread)
{
  int error = errno;
  bool there = time_used_by(thread) >= 0;
  errno = error;
  return there;
}

/* What the kernel says in a file "stat" after the name, which can hold anything; NULL if it says nothing. */
static char *kernel_facts(char const *file, char *text, size_t size)
{
  int error = errno, f = open(file, O_RDONLY | O_CLOEXEC);
  ssize_t n = f < 0 ? 0 : read(f, text, size - 1);
  if (f >= 0) close(f);
  errno = error;
  text[n < 0 ? 0 : n] = 0;
  char *p = strrchr(text, ')');
  return p != NULL && p[1] == ' ' ? p + 2 : NULL;
}

/* The letter by which the kernel tells what the thread does: R says that it runs or is ready to, S that it sleeps until
   something happens; 0 that it is not known. */
static char kernel_state(long thread)
{
  char file[64], text[256];
  snprintf(file, sizeof file, "/proc/self/task/%ld/stat", thread);
  char *p = kernel_facts(file, text, sizeof text);
  return p == NULL ? 0 : *p;
}

unsigned long bxr_thread_count(void)
{
  enum { BEFORE = 17 }; /* words between the name and the number */
  char text[512], *p = kernel_facts("/proc/self/stat", text, sizeof text);
  for (int i = 0; p != NULL && i < BEFORE; i++)
    if ((p = strchr(p, ' ')) != NULL) p++;
  return p == NULL ? 0 : strtoul(p, NULL, 10);
}

unsigned bxr_thread_list(long *ids, unsigned most)
{
  int error = errno;
  unsigned n = 0;
  DIR *tasks = opendir("/proc/self/task");
  struct dirent *d;
  while (tasks != NULL && n <= most && (d = readdir(tasks)) != NULL) {
    long id = strtol(d->d_name, NULL, 10);
    if (id == 0) continue; /* . and .. */
    if (n < most) bxr_store_relaxed(&ids[n], id);
    n++;
  }
  if (tasks != NULL) closedir(tasks);
  errno = error;
  return n == 0 ? most + 1 : n;
}

void bxr_thread_await_progress(long thread, bool const *ended)
{
  enum { BRIEFLY = 40, PROGRESS = 100000 /* ns */, PAUSE = 50000 /* ns */ };
  enum { LONG = 1000000000 / PAUSE, SHORT = 20000000 / PAUSE };
  for (int i = 0; i < BRIEFLY; i++) { /* usually the end of the thread is near */
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
bxr_thread_answer bxr_thread_stack_has(void const *p) { (void)p; return BXR_THREAD_UNKNOWN; }
long bxr_thread_id(void) { return 0; }
unsigned long bxr_thread_count(void) { return 0; }
unsigned bxr_thread_list(long *ids, unsigned most) { (void)ids; return most + 1; }
bool bxr_thread_is_there(long thread) { (void)thread; return true; }
bool bxr_thread_is_first(void) { return false; }

void bxr_thread_await_progress(long thread, bool const *ended)
{
  (void)thread;
  for (int i = 0; i < 400 && !bxr_load_acquire(ended); i++) {
    struct timespec t = { 0, 50000 };
    nanosleep(&t, NULL);
  }
}
#endif

/* --- the object that the library is part of ----------------------------------------------------------------------- */


/* These functions are in a library of their own on older systems, which programs need not link because of this one, and
   some systems do not have them. */
#pragma weak dladdr
#pragma weak dlopen
extern int __cxa_atexit(void (*)(void *), void *, void *) __attribute__((weak));

void bxr_object_pin(void)
{
#if defined(RTLD_NODELETE) && defined(RTLD_NOLOAD)
  Dl_info us;
  int error = errno;
  if (dladdr != NULL && dlopen != NULL && dladdr((void const *)&bxr_object_pin, &us) != 0 && us.dli_fname != NULL)
    (void)dlopen(us.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  errno = error;
#endif
}

/* --- at the exit -------------------------------------------------------------------------------------------------- */

static void (*at_process_exit[2])(void); /* (atomic) */

void bxr_object_at_exit(void (*f)(void))
{
  void (*first)(void) = bxr_load_relaxed(&at_process_exit[0]);
  bxr_object_pin();
  bxr_store_release(&at_process_exit[first != NULL && first != f], f);
}

static void call_at_exit(void *unused)
{
  (void)unused;
  for (int i = 0; i < 2; i++) {
    void (*f)(void) = bxr_load_acquire(&at_process_exit[i]);
    if (f != NULL) f();
  }
}

/* C++ objects with static storage duration end their roots at the exit: those of the program among the functions for
   the exit, in the reverse order of their construction; those of a shared object among its destructors. By its
   priority this destructor is the last of them. Those of other shared objects may come after this object's destructors.
   What is registered here comes after them, where the C library allows it at this point (glibc does). */
__attribute__((destructor(101))) static void when_process_exits(void)
{
  if (bxr_load_relaxed(&at_process_exit[0]) == NULL) return;
  if (__cxa_atexit == NULL || __cxa_atexit(call_at_exit, NULL, NULL) != 0) call_at_exit(NULL);
}

#if defined(__linux__) || defined(__FreeBSD__)
#pragma weak dl_iterate_phdr

/* The first object that the dynamic linker names is the program. */
static int has_us(struct dl_phdr_info *info, size_t size, void *us)
{
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_LOAD &&
        (uintptr_t)us - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) < info->dlpi_phdr[i].p_memsz)
      return 1;
  return -1;
}

static sem_t *at_exit; /* it is posted when the process exits */
static bool is_in_program(void) { return dl_iterate_phdr == NULL || dl_iterate_phdr(has_us, (void *)&at_exit) == 1; }

/* A destructor is called in both cases: when the process exits, where other objects may still use this one, and when
   the object is unloaded. What tells is a function of the C library among those for the exit, which does not belong to
   any object that may be unloaded. */
void bxr_object_prepare(void)
{
  if (at_exit != NULL || __cxa_atexit == NULL || is_in_program()) return;
  sem_t *s = malloc(sizeof(sem_t));
  if (s == NULL) return;
  if (sem_init(s, 0, 0) == 0 && __cxa_atexit((void (*)(void *))(void (*)(void))sem_post, s, NULL) == 0) at_exit = s;
  else free(s);
}

bool bxr_object_is_unloading(void)
{
  int posted;
  return at_exit != NULL && sem_getvalue(at_exit, &posted) == 0 && posted == 0;
}
#else
void bxr_object_prepare(void) {}
bool bxr_object_is_unloading(void) { return false; }
#endif
