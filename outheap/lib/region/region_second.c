/* SPDX-License-Identifier: MIT */
#include "region_second.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#if !defined SANITIZED && (defined __x86_64__ || defined __aarch64__) /* where clone's arguments are those below */
#define OFFERED 1
#else
#define OFFERED 0
#endif

#define BYTES OUTHEAP_REGION_SECOND_SHARED
/* The last byte of the page says that f returned. */
static bool *done_of(void *shared) { return (bool *)shared + BYTES - 1; }

bool outheap_region_second_helps(void)
{
  struct stat s;
  if (!OFFERED) return false;
  /* a folder for each thread, and "." and ".."; where there is no /proc we do not know */
  return stat("/proc/self/task", &s) != 0 || s.st_nlink != 3;
}

/* The second process needs the memory that the first one writes to meanwhile once more. */
static void prepare(void)
{
  int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file >= 0) {
    if (write(file, "1000", 4) != 4) {}
    (void)close(file);
  }
  (void)prctl(PR_SET_NAME, (unsigned long)"outheap-copy", 0ul, 0ul, 0ul);
  (void)prctl(PR_SET_DUMPABLE, 0ul, 0ul, 0ul, 0ul); /* after that, what is in /proc/self belongs to root */
}

bool outheap_region_second_start(struct outheap_region_second *s, void (*f)(void *), void *data)
{
  sigset_t all, before;
  s->process = 0;
  s->shared = MAP_FAILED;
  if (OFFERED)
    s->shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (s->shared == MAP_FAILED) {
    s->shared = NULL;
    return false;
  }
  s->first = getpid();
  /* A handler may be of the program, and is not to run twice. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  /* No signal at the end: neither SIGCHLD, nor a child for those who wait without __WCLONE. */
  long process = syscall(SYS_clone, (unsigned long)CLONE_FILES, 0ul, 0ul, 0ul, 0ul);
  if (process == 0) {
    prepare();
    f(data);
    __atomic_store_n(done_of(s->shared), true, __ATOMIC_RELEASE); /* pairs with the acquire in `wait` */
    _exit(0);
  }
  int e = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (process < 0) {
    outheap_region_second_end(s);
    errno = e;
    return false;
  }
  s->process = (pid_t)process;
  return true;
}

bool outheap_region_second_is_left(struct outheap_region_second const *s) { return getppid() != s->first; }

bool outheap_region_second_wait(struct outheap_region_second *s)
{
  int status;
  while (waitpid(s->process, &status, __WCLONE) < 0 && errno == EINTR) {}
  /* A program that waits for everything (__WALL) may have been told instead. */
  return __atomic_load_n(done_of(s->shared), __ATOMIC_ACQUIRE);
}

void outheap_region_second_end(struct outheap_region_second *s)
{
  if (s->shared != NULL) (void)munmap(s->shared, BYTES);
  s->shared = NULL;
}
