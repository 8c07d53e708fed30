/* SPDX-License-Identifier: MIT */
/* Memory from one area that grows at its end (OH_SBRK): the area is this file's own, limited to 1 GB, and shared. */
#include "address_space.h"
#include "block.h"
#include "os.h"
#include "pool.h"
#include "settings.h"
#include "space.h"
#include "start.h"
#include "try.h"

#define M ((size_t)1 << 20)
#define GB ((size_t)1 << 30)

#if OH_SBRK
#include "outheap_sbrk.h"

static size_t asked, shrunk;
#ifndef __wasm__
static size_t grown;
#endif

/* What can be had still. */
static size_t room(void)
{
#ifdef __wasm__
  return GB - (__builtin_wasm_memory_size(0) << 16);
#else
  return GB - grown;
#endif
}

void *outheap_sbrk(intptr_t increment)
{
  asked++;
#ifdef __wasm__
  if (increment < 0) return (void *)-1;
  size_t pages = __builtin_wasm_memory_grow(0, ((size_t)increment + 65535) >> 16);
  return pages == SIZE_MAX ? (void *)-1 : (void *)(pages << 16);
#else
  if (increment > 0 && (size_t)increment > GB - grown) return (void *)-1;
  void *p = sbrk(increment);
  if (p != (void *)-1) grown += (size_t)increment;
  shrunk += increment < 0;
  return p;
#endif
}

static bool zero(char const *p, size_t bytes)
{
  for (size_t i = 0; i < bytes; i += 512)
    if (p[i] != 0) return false;
  return p[bytes - 1] == 0;
}

/* Somebody else takes memory. */
static uintptr_t intrude(size_t bytes)
{
  char *p = outheap_sbrk((intptr_t)bytes);
  EXPECT(p != (char *)-1, "no memory for the intruder");
  memset(p, 'i', bytes);
  return (uintptr_t)p;
}

/* Pieces are aligned, read as zeroes, touch each other if nobody was between, and are never an intruder's. */
static void places(void)
{
  uintptr_t a = oh_os_reserve(2 * OH_CHUNK, OH_CHUNK, OH_ADDRESS_LIMIT);
  EXPECT(a != 0 && a % OH_CHUNK == 0 && zero((char *)a, 2 * OH_CHUNK), "%zx", (size_t)a);
  EXPECT(oh_os_top() == a + 2 * OH_CHUNK, "the end");
  EXPECT(oh_os_reserve_at(a + 2 * OH_CHUNK, OH_CHUNK), "at the end");
  errno = 0;
  EXPECT(!oh_os_reserve_at(a + 16 * OH_CHUNK, OH_CHUNK) && errno == EEXIST, "beyond the end");
  uintptr_t other = intrude(3 * 65536);
  errno = 0;
  EXPECT(!oh_os_reserve_at(a + 3 * OH_CHUNK, OH_CHUNK) && errno == EEXIST, "taken");
  uintptr_t b = oh_os_reserve(OH_CHUNK, OH_CHUNK, OH_ADDRESS_LIMIT);
  EXPECT(b >= other + 3 * 65536 && b % OH_CHUNK == 0, "%zx", (size_t)b);
  /* records come from what alignment has left over */
  uintptr_t top = oh_os_top();
  for (int i = 0; i < 10; i++) {
    uintptr_t r = oh_os_map(1000);
    EXPECT(r >= other + 3 * 65536 && r < b && zero((char *)r, 1000), "record %zx", (size_t)r);
    memset((char *)r, 'r', 1000);
  }
  EXPECT(oh_os_top() == top, "nothing new");
  EXPECT(*(char *)other == 'i' && ((char *)other)[3 * 65536 - 1] == 'i', "the intruder's");
  EXPECT(oh_os_reserve(OH_CHUNK, OH_CHUNK, a) == 0 && oh_os_top() == top, "below a limit");
}

/* Only the end goes back, if it is ours; addresses stay. On systems where the area shrinks. */
static void end_goes_back(void)
{
  uintptr_t a = oh_os_reserve(2 * OH_CHUNK, OH_CHUNK, OH_ADDRESS_LIMIT), end = a + 2 * OH_CHUNK;
  char *p = (char *)a;
  size_t before = shrunk;
  EXPECT(a != 0 && oh_os_commit(p, OH_CHUNK + OH_PAGE), "commit");
  memset(p, 'x', OH_CHUNK + OH_PAGE);
  EXPECT(!oh_os_purge(p, OH_PAGE) && p[0] == 'x' && shrunk == before, "in the middle");
  bool shrinks = oh_os_purge(p + OH_CHUNK, OH_PAGE);
#ifdef __wasm__
  EXPECT(!shrinks, "memory of WebAssembly");
#else
  EXPECT(shrinks && shrunk == before + 1, "behind it nothing was used");
#endif
  EXPECT(oh_os_top() == end && p[OH_CHUNK - 1] == 'x', "the rest");
  EXPECT(p[OH_CHUNK] == (shrinks ? 0 : 'x'), "contents");
  EXPECT(oh_os_commit(p + OH_CHUNK, OH_CHUNK), "commit");
  memset(p + OH_CHUNK, 'y', OH_CHUNK);
  EXPECT(!oh_os_purge(p + OH_CHUNK - OH_PAGE, OH_PAGE) && p[OH_CHUNK] == 'y', "behind it something is used");
  intrude(65536);
  EXPECT(!oh_os_purge(p + OH_CHUNK, OH_CHUNK) && p[OH_CHUNK] == 'y' && p[end - a - 1] == 'y', "another's end");
}

/* A page of pools or blocks is in chunks that the table calls the heap's, and nobody else's memory is. */
static void kinds(void)
{
  for (int i = 0; i < 40; i++) {
    uintptr_t other = intrude(65536);
    char *block = oh_block_alloc(OH_CHUNK / 4 + 1), *pool = oh_pool_alloc();
    EXPECT(block != NULL && pool != NULL, "no memory");
    memset(block, 'b', OH_CHUNK / 4 + 1);
    memset(pool, 'p', OH_POOL);
    EXPECT(oh_table_kind((uintptr_t)block) == OH_KIND_MAJOR && oh_table_kind((uintptr_t)pool) == OH_KIND_MAJOR, "heap");
    EXPECT(!oh_kind_is_heap(oh_table_kind(other)) && !oh_kind_is_heap(oh_table_kind(other + 65535)), "another's");
    EXPECT(*(char *)other == 'i' && ((char *)other)[65535] == 'i', "another's");
  }
  oh_space_validate();
}

/* To the end: NULL, counted, nothing lost, and what is freed serves again. */
static void limit(void)
{
  static char *all[1024];
  size_t n = 0, size = 4 * M - 64, refusals = oh_notice_count(OH_NOTICE_MEMORY), all_there_is = room();
  for (; n < 1024 && (all[n] = oh_block_alloc(size)) != NULL; n++) {
    memset(all[n], (int)n | 1, 64);
    all[n][size - 1] = 'e';
  }
  EXPECT(errno == ENOMEM && oh_notice_count(OH_NOTICE_MEMORY) > refusals, "not counted");
  printf("    %zu blocks, %zu MB\n", n, n * size / M);
  EXPECT(n * size > all_there_is / 4 * 3 && room() < 2 * OH_CHUNK, "%zu of %zu MB", n * size / M, all_there_is / M);
  oh_space_validate();
  oh_block_validate();
  errno = 0;
  EXPECT(oh_block_alloc(all_there_is / 2) == NULL && errno == ENOMEM, "half of it");
  for (size_t i = 0; i < n; i++) {
    EXPECT(all[i][0] == (char)(i | 1) && all[i][size - 1] == 'e', "contents of %zu", i);
    if (i >= n / 2) oh_block_free(all[i]);
  }
  size_t again = n / 2;
  while (again < n && (all[again] = oh_block_alloc(size)) != NULL) again++;
  EXPECT(again >= n - n / 20, "%zu of %zu again", again, n);
  for (size_t i = 0; i < again; i++) oh_block_free(all[i]);
  size_t before = asked;
  EXPECT((all[0] = oh_block_alloc(all_there_is / 2)) != NULL && asked == before, "what was freed is one piece");
  oh_block_free(all[0]);
  oh_space_validate();
}

/* Requests that fail, one after the other. */
static void failures(void)
{
  for (long i = 1; i < 12; i++) {
    oh_os_fail_after = i;
    void *block = oh_block_alloc(5 * OH_CHUNK + 1), *pool = oh_pool_alloc();
    oh_os_fail_after = 0;
    oh_block_free(block);
    if (pool != NULL) oh_pool_free(pool);
    oh_space_validate();
    oh_block_validate();
    oh_pool_validate();
  }
  void *block = oh_block_alloc(5 * OH_CHUNK + 1);
  EXPECT(block != NULL, "not well again");
  oh_block_free(block);
}
#define WHERE(name) TRY(name)
#else
#define WHERE(name) (try_listing ? (void)puts(#name) : (void)0)
#endif

int main(int argc, char **argv)
{
  try_start(argc, argv);
  setenv("OUTHEAP", "thp=off", 1);
  oh_start();
  WHERE(places);
  WHERE(end_goes_back);
  WHERE(kinds);
  WHERE(failures);
  WHERE(limit);
  return try_end();
}
