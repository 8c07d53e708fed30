/* SPDX-License-Identifier: MIT */
#include "thread.h"
#include "atomic.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <time.h>
#include <unistd.h>

void bxr_thread_yield(void) { sched_yield(); }

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

bxr_thread_answer bxr_thread_stack_has(void const *p)
{
  /* At first, and when the limit of its size was raised. */
  if (!on_known_stack(__builtin_frame_address(0))) ask_for_stack();
  return own_stack.size == 0 ? BXR_THREAD_UNKNOWN : on_known_stack(p) ? BXR_THREAD_YES : BXR_THREAD_NO;
}

long bxr_thread_id(void) { return syscall(SYS_gettid); }
bool bxr_thread_is_first(void) { return syscall(SYS_gettid) == getpid(); }

/* Processor time in ns; -1 when there is no such thread. */
static int64_t time_used_by(long thread)
{
  enum { THREADS_OWN = 4, AS_SCHEDULED = 2 }; /* the kernel's encoding of the clock that pthread_getcpuclockid gives */
  struct timespec t;
  clockid_t clock = (clockid_t)(~(unsigned long)thread << 3 | THREADS_OWN | AS_SCHEDULED);
  return clock_gettime(clock, &t) == 0 ? (int64_t)t.tv_sec * 1000000000 + t.tv_nsec : -1;
}

/* What the kernel tells in a file "stat" after the name, which can hold anything: NULL if nothing. */
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

/* The letter by which the kernel tells what the thread does: R runs or is ready to, S sleeps until something happens;
   0: not known. */
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
