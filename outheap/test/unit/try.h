/* SPDX-License-Identifier: MIT */
/* What the tests of the allocator share: expectations, random numbers that can be replayed, threads, resident
   memory. */
#ifndef TRY_H
#define TRY_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRY_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TRY_SANITIZED 1
#endif
#endif
#ifndef TRY_SANITIZED
#define TRY_SANITIZED 0
#endif

static unsigned long try_passed, try_failed;
static uint64_t try_seed;
static char const *try_only; /* the one test to run */
static bool try_listing;

#define EXPECT(c, ...)                                                                                  \
  do {                                                                                                  \
    if (!(c)) {                                                                                         \
      printf("%s:%d: not so: %s; ", __FILE__, __LINE__, #c);                                            \
      printf("" __VA_ARGS__);                                                                           \
      printf("\n  replay with --seed %llu\n0 passed, 1 failed\n", (unsigned long long)try_seed);         \
      fflush(stdout);                                                                                   \
      _exit(1);                                                                                         \
    }                                                                                                   \
  } while (0)

static inline uint64_t try_random(uint64_t *state)
{
  uint64_t x = *state += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}
static inline size_t try_below(uint64_t *state, size_t n) { return (size_t)(try_random(state) % n); }

static inline void try_start(int argc, char **argv)
{
  try_seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--list") == 0) try_listing = true;
    if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) try_seed = strtoull(argv[i + 1], NULL, 0);
    if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) try_only = argv[i + 1];
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (!try_listing) printf("seed %llu\n", (unsigned long long)try_seed);
}

static inline bool try_wanted(char const *name)
{
  if (try_listing) puts(name);
  return !try_listing && (try_only == NULL || strcmp(try_only, name) == 0);
}
#define TRY(name) (try_wanted(#name) ? (printf("  %s\n", #name), name(), try_passed++) : 0)

static inline int try_end(void)
{
  if (try_listing) return 0;
  if (try_only != NULL && try_passed == 0) {
    puts("skipped: not in this flavour");
    return 77;
  }
  printf("%lu passed, %lu failed\n", try_passed, try_failed);
  return try_failed != 0;
}

static inline void try_threads(int n, void *(*body)(void *))
{
  pthread_t t[16];
  for (intptr_t i = 0; i < n; i++) EXPECT(pthread_create(&t[i], NULL, body, (void *)i) == 0, "thread %d", (int)i);
  for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
}

/* Resident bytes of [start, start + bytes), whole system pages. */
static inline size_t try_resident(void *start, size_t bytes)
{
  size_t grain = (size_t)sysconf(_SC_PAGESIZE), n = 0;
  uintptr_t from = (uintptr_t)start & ~(grain - 1), to = ((uintptr_t)start + bytes + grain - 1) & ~(grain - 1);
  unsigned char seen[1024];
  for (; from < to; from += sizeof seen * grain) {
    size_t length = to - from < sizeof seen * grain ? to - from : sizeof seen * grain;
    if (mincore((void *)from, length, seen) != 0) continue;
    for (size_t i = 0; i < length / grain; i++) n += seen[i] & 1;
  }
  return n * grain;
}

/* Does `body` end the process by abort? In a child, with its standard error closed. */
static inline bool try_aborts(void (*body)(void))
{
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    close(2);
    body();
    _exit(0);
  }
  return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
