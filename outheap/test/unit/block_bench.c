/* SPDX-License-Identifier: MIT */
/* Time of a block taken and given back, beside malloc. Not a test.
   Arguments: rounds (default 3000000). Prints nanoseconds of processor time for one take and one give by a thread; the
   least of five runs. Processor time, since the machine may have other work; what threads wait for each other is not in
   it. */
#include "block.h"
#include "pool.h"
#include "start.h"
#include "try.h"

struct allocator { char const *name; void *(*take)(size_t); void (*give)(void *); };
static void *pool_take(size_t n) { return (void)n, oh_pool_alloc(); }
static struct allocator const all[] = { { "blocks", oh_block_alloc, oh_block_free },
                                        { "malloc", malloc, free },
                                        { "pools", pool_take, oh_pool_free } };

static struct allocator const *subject;
static size_t least, most, held, rounds;

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Replaces blocks chosen at random, of sizes chosen at random; touches the head of each. */
static void *replace(void *number)
{
  uint64_t state = 12345 + (uintptr_t)number;
  void **block = calloc(held, sizeof *block);
  for (size_t i = 0; i < rounds + held; i++) {
    uint64_t r = try_random(&state);
    size_t k = i < held ? i : (r >> 32) % held;
    if (block[k] != NULL) subject->give(block[k]);
    block[k] = subject->take(least + (r & 0xffffffff) % (most - least + 1));
    *(size_t volatile *)block[k] = i;
  }
  for (size_t k = 0; k < held; k++) subject->give(block[k]);
  free(block);
  return NULL;
}

/* Blocks that another thread gives back. */
static void *box[1024];
static void *pass(void *number)
{
  uint64_t state = 12345 + (uintptr_t)number;
  for (size_t i = 0; i < rounds; i++) {
    uint64_t r = try_random(&state);
    void *p = subject->take(least + (r & 0xffffffff) % (most - least + 1));
    *(size_t volatile *)p = i;
    p = __atomic_exchange_n(&box[(r >> 32) % 1024], p, __ATOMIC_ACQ_REL);
    if (p != NULL) subject->give(p);
  }
  return NULL;
}

static void run(char const *name, unsigned threads, void *(*body)(void *), size_t a, size_t b, size_t n)
{
  printf("%-34s", name);
  for (size_t s = 0; s < sizeof all / sizeof *all; s++) {
    double best = 1e18;
    subject = &all[s], least = a, most = b, held = n;
    if (subject->take == pool_take && b > 32760) continue;
    for (int i = 0; i < 5; i++) {
      double start = now();
      try_threads((int)threads, body);
      double t = (now() - start) / (double)rounds / threads;
      if (t < best) best = t;
    }
    for (int i = 0; i < 1024; i++) {
      void *p = box[i];
      if (p != NULL) subject->give(p);
      box[i] = NULL;
    }
    printf("  %s %6.1f", subject->name, best);
  }
  printf("\n");
}

int main(int argc, char **argv)
{
  setvbuf(stdout, NULL, _IOLBF, 0);
  rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 3000000;
  for (unsigned t = 1; t <= 2; t++) {
    printf("%u thread%s\n", t, t > 1 ? "s" : "");
    run("one of 4 KB, again and again", t, replace, 4096, 4096, 1);
    run("one of 2 to 64 KB", t, replace, 2048, 65536, 1);
    run("1000 of 1 to 4 KB", t, replace, 1024, 4096, 1000);
    run("1000 of 2 to 64 KB", t, replace, 2048, 65536, 1000);
    run("1000 of 8 KB", t, replace, 8192, 8192, 1000);
    run("20000 of 1 to 16 KB", t, replace, 1024, 16384, 20000);
    rounds /= 100; /* system calls and the filling of pages */
    run("100 of 100 KB to 4 MB", t, replace, 100000, 4 << 20, 100);
    rounds *= 100;
    run("1024 of 2 to 64 KB, passed on", t, pass, 2048, 65536, 1024);
    run("1000 of 32 KB", t, replace, 32760, 32760, 1000);
  }
  return 0;
}
