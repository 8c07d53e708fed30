/* SPDX-License-Identifier: MIT */
/* What allocation and a cycle of the collector leave alone: lists of classes without blocks, and locks. */
#include "arena.h"
#include "block.h"
#include "space.h"
#include "start.h"
#include "try_child.h"
#if defined __GLIBC__ && __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

/* An arena of which the lists of the larger classes cannot be read. It may take any number that the process does not
   use. */
static struct oh_arena *part_of_an_arena(void)
{
  static struct oh_arena a = { .lock = PTHREAD_MUTEX_INITIALIZER, .number = 7 };
  size_t grain = oh_os_page_size(), half = OH_ARENA_CLASSES / 2 * sizeof *a.list, part = OH_ROUND_UP(half, grain);
  char *map = mmap(NULL, 2 * part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(map != MAP_FAILED && mprotect(map + part, part, PROT_NONE) == 0, "%d", errno);
  a.list = (struct oh_arena_block **)(map + part - half);
  return &a;
}

static void take_and_age(void)
{
  struct oh_arena *a = part_of_an_arena();
  oh_start();
  pthread_mutex_lock(&a->lock);
  struct oh_arena_run run = { oh_space_alloc(OH_SPACE_BLOCKS, 2 * OH_PAGE, true, NULL), 2 * OH_PAGE };
  EXPECT(run.start != NULL && oh_arena_ensure_pages((uintptr_t)run.start, run.bytes), "no memory");
  struct oh_arena_block *b = oh_arena_extend(a, run, false, oh_arena_size_for(100));
  EXPECT(b != NULL, "no block");
  oh_arena_age(a);
  EXPECT(a->old > OH_PAGE, "%zu", a->old);
  run = oh_arena_free(a, b);
  EXPECT(run.bytes == 0, "%zu", run.bytes);
  EXPECT(oh_arena_trim(a) == 0 && a->pages == 0, "%zu", a->pages);
}

/* In a heap with few free blocks a cycle costs as little as these. */
static void empty_classes(void) { in_child(NULL, take_and_age); }

/* The only thread of a process waits for no lock, where the C library tells that it is, but in the checked build. */
static void allocate_locked(void)
{
  oh_start();
#if defined __GLIBC__ && __has_include(<sys/single_threaded.h>) && !OH_DEBUG
  if (!__libc_single_threaded) return;
  alarm(60);                          /* what waits here waits for ever */
  oh_block_free(oh_block_alloc(100)); /* the pages of the arena are there */
  oh_block_lock();
  char *p = oh_block_alloc(5000), *q = oh_block_alloc(100);
  EXPECT(p != NULL && q != NULL && p != q, "%p, %p", (void *)p, (void *)q);
  oh_block_free(p);
  oh_block_free(q);
  oh_block_unlock();
  oh_block_validate();
#endif
}
static void alone(void) { in_child(NULL, allocate_locked); }

int main(int argc, char **argv)
{
  try_start(argc, argv);
  TRY(empty_classes);
  TRY(alone);
  return try_end();
}
