/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "trap_old.h"
#include "base.h"
#include "block.h"
#include "pool.h"
#include "settings.h"
#include <pthread.h>
#include <sys/mman.h>

#define SMALL_PAGE ((uintptr_t)4096)
#define POOLS_LEFT 4096 /* 128 MiB */
#define LARGE_LEFT 4096
_Static_assert(POOLS_LEFT + LARGE_LEFT <= OH_TRAP_LEFT_OLD, "what is inaccessible has its note");

void oh_trap_old_leave_pool(struct oh_trap_left const *left)
{
  static void *pools[POOLS_LEFT]; /* pools[i % POOLS_LEFT]: the i-th */
  static uintnat count;
  oh_trap_left_add(left);
  oh_trap_left_protect(left->begin, left->end, PROT_NONE);
  uintnat i = oh_fetch_add_relaxed(&count, 1);
  void *pool = oh_exchange_acq_rel(&pools[i % POOLS_LEFT], (void *)left->begin);
  if (pool == NULL) return;
  oh_trap_left_protect((uintptr_t)pool, (uintptr_t)pool + OH_POOL, PROT_READ | PROT_WRITE);
  oh_pool_free(pool);
}

/* --- large blocks ------------------------------------------------------------------------------------------------- */

struct record { void *memory; size_t bytes; }; /* of whole pages */

static struct record *record_of(void *block) { return (struct record *)block - 1; }

void *oh_trap_old_alloc(size_t bytes)
{
  bytes = OH_ROUND_UP(bytes, SMALL_PAGE);
  char *memory = oh_block_alloc(bytes + SMALL_PAGE + sizeof(struct record));
  if (memory == NULL) return NULL;
  void *block = (void *)OH_ROUND_UP((uintptr_t)memory + sizeof(struct record), SMALL_PAGE);
  *record_of(block) = (struct record){ memory, bytes };
  return block;
}

static void forget_contents(void *block)
{
  size_t bytes = record_of(block)->bytes;
  if (bytes > SMALL_PAGE) (void)madvise((char *)block + SMALL_PAGE, bytes - SMALL_PAGE, MADV_DONTNEED);
}

void *oh_trap_old_copy(void *block, size_t bytes)
{
  void *copy = oh_trap_old_alloc(bytes);
  if (copy == NULL) return NULL;
  memcpy(copy, block, bytes);
  forget_contents(block);
  return copy;
}

/* blocks[i % LARGE_LEFT] for first <= i < next: those that were left last, of `bytes` together. */
static struct { pthread_mutex_t lock; void *blocks[LARGE_LEFT]; uintnat first, next; size_t bytes; } large =
  { .lock = PTHREAD_MUTEX_INITIALIZER };

static void give_back_oldest(void)
{
  void *block = large.blocks[large.first++ % LARGE_LEFT];
  struct record *r = record_of(block);
  large.bytes -= r->bytes;
  oh_trap_left_protect((uintptr_t)block, (uintptr_t)block + r->bytes, PROT_READ | PROT_WRITE);
  oh_block_free(r->memory);
}

void oh_trap_old_leave(struct oh_trap_left const *left)
{
  struct oh_trap_left whole = *left;
  void *block = (void *)left->begin;
  size_t bytes = record_of(block)->bytes;
  whole.end = whole.begin + bytes;
  oh_trap_left_add(&whole);
  forget_contents(block);
  oh_trap_left_protect(whole.begin, whole.end, PROT_NONE);
  pthread_mutex_lock(&large.lock);
  if (large.next - large.first == LARGE_LEFT) give_back_oldest();
  large.blocks[large.next++ % LARGE_LEFT] = block;
  large.bytes += bytes;
  while (large.bytes > oh_settings.check.large && large.next - large.first > 1) give_back_oldest();
  pthread_mutex_unlock(&large.lock);
}
