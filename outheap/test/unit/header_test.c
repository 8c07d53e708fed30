/* SPDX-License-Identifier: MIT */
/* Reading words that may not be there, and telling blocks of C from naked pointers. */
#define _GNU_SOURCE
#include "header.h"
#include "os.h"
#include "outheap.h"
#include "ranges.h"
#include "start.h"
#include "try.h"
#include <setjmp.h>

#define BLACK(size, tag) ((uintptr_t)(size) << 10 | OH_HEADER_BLACK | (tag))
static uintptr_t data[64] = { BLACK(2, 0), 1, 3 };

static void *map(size_t bytes, int protection)
{
  void *p = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(p != MAP_FAILED, "mmap");
  return p;
}

static bool reads(uintptr_t address)
{
  uintptr_t word = 0;
  return oh_peek(address, &word);
}

static bool exists(void const *p) { return oh_header_exists((uintptr_t)p); }

static sigjmp_buf back;
static int seen;
static void theirs(int signal)
{
  seen = signal;
  siglongjmp(back, 1);
}
static void theirs_with_information(int signal, siginfo_t *info, void *context)
{
  (void)info, (void)context;
  seen = 100 + signal;
  siglongjmp(back, 1);
}

/* A fault elsewhere is the business of the handlers that were there before. */
static void other_faults(void)
{
  char *none = map(1 << 16, PROT_NONE);
  struct sigaction a = { .sa_handler = theirs, .sa_flags = SA_NODEFER }, b = { .sa_flags = SA_NODEFER | SA_SIGINFO };
  b.sa_sigaction = theirs_with_information;
  sigaction(SIGSEGV, &a, NULL);
  sigaction(SIGBUS, &b, NULL);
  EXPECT(!reads((uintptr_t)none), "no memory");
  EXPECT(seen == 0, "not passed on");
  if (sigsetjmp(back, 1) == 0) *(char volatile *)none = 1;
  EXPECT(seen == SIGSEGV, "passed on: %d", seen);
  FILE *f = tmpfile();
  EXPECT(f != NULL && ftruncate(fileno(f), 4096) == 0, "file");
  char *mapped = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fileno(f), 0);
  EXPECT(mapped != MAP_FAILED && reads((uintptr_t)mapped) && !reads((uintptr_t)mapped + 4096),
         "behind the end of a file");
  if (sigsetjmp(back, 1) == 0) (void)*(char volatile *)(mapped + 4096);
  EXPECT(seen == 100 + SIGBUS, "passed on: %d", seen);
  EXPECT(!reads((uintptr_t)none) && reads((uintptr_t)data), "and after that");
}

/* Without a handler before, a fault elsewhere still ends the process by its signal. */
static void fatal_faults(void)
{
  pid_t child = fork();
  EXPECT(child >= 0, "fork");
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    char *none = map(1 << 16, PROT_NONE);
    if (reads((uintptr_t)none)) _exit(1);
    *(char volatile *)none = 1;
    _exit(2);
  }
  int status;
  EXPECT(waitpid(child, &status, 0) == child, "wait");
  EXPECT(TRY_SANITIZED || (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV), "status %x", status);
}

static void words(void)
{
  char *none = map(1 << 16, PROT_NONE), *some = map(1 << 16, PROT_READ);
  uintptr_t word = 0;
  EXPECT(oh_peek((uintptr_t)data, &word) && word == data[0], "a word");
  EXPECT(reads((uintptr_t)some) && !reads((uintptr_t)none) && !reads(0) && !reads(8), "readable or not");
  EXPECT(!reads(~(uintptr_t)7) && !reads((uintptr_t)1 << 63) && !reads((uintptr_t)0x8000000000000), "no addresses");
  munmap(some, 1 << 16);
  EXPECT(!reads((uintptr_t)some), "unmapped");
}

static void *read_all(void *p)
{
  for (int i = 0; i < 2000; i++) EXPECT(!reads((uintptr_t)p) && reads((uintptr_t)data), "in a thread");
  return NULL;
}

static void threads(void)
{
  pthread_t t[4];
  void *none = map(1 << 16, PROT_NONE);
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, read_all, none);
  for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
}

static void blocks(void)
{
  uintptr_t begin, end;
  static uintptr_t closure[8] = { BLACK(5, 247), 2, 2, (uintptr_t)3 << 10 | 249, 2, 2 };
  uintptr_t *heap = malloc(8 * sizeof *heap), *white = malloc(8 * sizeof *heap);
  if ((uintptr_t)heap >> OH_ADDRESS_BITS != 0) return; /* beyond the table nothing is looked at */
  heap[0] = BLACK(2, 0), white[0] = (uintptr_t)2 << 10;
  EXPECT(oh_os_image((uintptr_t)data, &begin, &end) && begin <= (uintptr_t)data && (uintptr_t)(data + 64) <= end,
         "image");
  EXPECT(!oh_os_image((uintptr_t)heap, &begin, &end), "no image");
  for (int image = 0; image < 2; image++) {
    EXPECT(exists(data + 1) && exists(heap + 1) && !exists(white + 1), "by colour");
    EXPECT(!exists((char *)data + 9) && !exists((char *)data + 12) && !exists((char *)data + 10), "not aligned");
    EXPECT(exists(closure + 1) && exists(closure + 4) && !exists(closure + 3), "a function in a closure");
    EXPECT(!exists(NULL) && !exists((void *)8) && !exists((void *)~(uintptr_t)7), "no addresses");
    EXPECT(!oh_header_set_opaque(true) && !exists(data + 1) && !exists(heap + 1) && !exists(closure + 4), "opaque");
    EXPECT(oh_ranges_add((uintptr_t)(white + 1), (uintptr_t)(white + 3), OH_RANGES_VALUES, true) == 0, "declare");
    EXPECT(exists(white + 1) && !exists(white + 3), "declared");
    EXPECT(outheap_set_opaque(false) && exists(white + 1) && exists(data + 1), "not opaque");
    EXPECT(oh_ranges_remove((uintptr_t)(white + 1), (uintptr_t)(white + 3), OH_RANGES_VALUES, true) == 0, "withdraw");
    EXPECT(!exists(white + 1), "withdrawn");
    EXPECT(oh_os_image((uintptr_t)data, &begin, &end), "image");
    oh_header_set_image(begin, end);
    EXPECT(!exists((void *)begin), "the first header of the image is a word behind its beginning");
  }
  void *young = outheap_allocate(OUTHEAP_MAJOR, 1);
  EXPECT(exists((char *)young + 64), "the heap's");
  outheap_free(OUTHEAP_MAJOR, young, 1);
  free(heap);
  free(white);
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  TRY(fatal_faults);
  TRY(other_faults);
  TRY(words);
  TRY(threads);
  oh_start();
  TRY(blocks);
  return try_end();
}
