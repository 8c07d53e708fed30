/* SPDX-License-Identifier: MIT */
/* Memory that is handed out by malloc and mmap, and given back. All of it is remembered. */
#define _GNU_SOURCE
#include <outheap.h>
#include <caml/mlvalues.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum outheap_kind outheap_classify(void const *address) __attribute__((weak));

enum { AREAS = 20000 };
static struct { char *begin; size_t bytes; int mapped, held; } areas[AREAS];
static int number;

static uint64_t random_state = 88172645463325252u;
static uint64_t next_random(void)
{
  random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
  return random_state;
}

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* The free chunk that is next to the heap, where the heap would grow. */
static char *beside(value block)
{
  uintptr_t chunk = (uintptr_t)1 << 28, heap = (uintptr_t)block & ~(chunk - 1);
  for (uintptr_t i = 2; i < 2000; i++) {
    char *p = (char *)(i & 1 ? heap - i / 2 * chunk : heap + i / 2 * chunk);
    char *q =
      mmap(p, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (q == p) return p;
    if (q != MAP_FAILED) munmap(q, chunk);
  }
  return MAP_FAILED;
}

/* how: 0 malloc, 1 mmap, 2 mmap of whole chunks of 256 MiB, 3 of a free chunk beside that of `block`. The number of the
   area. */
value recycle_get(value how, value block)
{
  uint64_t r = next_random();
  size_t bytes;
  char *p;
  if (number == AREAS) abort();
  switch (Int_val(how)) {
  case 0:
    bytes = r % 32 == 0 ? 1 + (r >> 8) % (8 << 20) : 16 + (r >> 8) % 4096;
    p = malloc(bytes);
    if (!p) abort();
    break;
  case 1:
    bytes = (size_t)65536 << (r >> 8) % 11;
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) abort();
    break;
  case 3:
    bytes = (size_t)1 << 28;
    p = beside(block);
    if (p == MAP_FAILED) abort();
    break;
  default:
    bytes = (size_t)(2 + r % 3) << 28;
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) abort();
  }
  /* like headers */
  for (int i = 0; i < 16 && 16 * (size_t)i < bytes - 8; i++) ((uintptr_t *)p)[2 * i] = 3 << 10 | (r >> i & 255);
  areas[number].begin = p, areas[number].bytes = bytes, areas[number].mapped = Int_val(how) > 0, areas[number].held = 1;
  return Val_int(number++);
}

value recycle_give(value n)
{
  int i = Int_val(n);
  if (!areas[i].held) return Val_unit;
  if (areas[i].mapped) munmap(areas[i].begin, areas[i].bytes);
  else free(areas[i].begin);
  areas[i].held = 0;
  return Val_unit;
}
value recycle_trim(value unit) { (void)unit; malloc_trim(0); return Val_unit; }

/* The k-th address of an area: its beginning, the word after that, its middle, and so on, one in each part of
   `parts`. */
static char *address(int i, int k)
{
  size_t parts = areas[i].bytes >> 20 ? areas[i].bytes >> 20 : 1; /* each MiB */
  return areas[i].begin + areas[i].bytes / parts * (k % parts) / 8 * 8 + 8;
}
value recycle_address(value n, value k) { return (value)address(Int_val(n), Int_val(k)); }
value recycle_same(value v, value n, value k) { return Val_bool((char *)v == address(Int_val(n), Int_val(k))); }

/* How many areas have an address that is OCaml's heap now. */
value recycle_taken(value all)
{
  int taken = 0;
  if (!outheap_classify) return Val_int(-1);
  for (int i = 0; i < number; i++)
    for (int k = 0; k < (Bool_val(all) ? (int)(areas[i].bytes >> 20) + 1 : 1); k++) {
      enum outheap_kind kind = outheap_classify(address(i, k));
      if (kind == OUTHEAP_MAJOR || kind == OUTHEAP_YOUNG || kind == OUTHEAP_VALUES) {
        if (taken++ == 0)
          fprintf(stderr, "recycle: %p, in %zu bytes from %p, is of kind %d\n", (void *)address(i, k), areas[i].bytes,
                  (void *)areas[i].begin, kind);
        break;
      }
    }
  return Val_int(taken);
}
value recycle_kind(value v)
{
  return Val_int(outheap_classify ? (int)outheap_classify((void *)v) : -1);
}
