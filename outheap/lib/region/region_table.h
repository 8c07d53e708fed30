/* SPDX-License-Identifier: MIT */
/* A hash table from addresses (never 0) to words: open addressing, at most half full. Memory as in region_vector.h. */
#ifndef OUTHEAP_REGION_TABLE_H
#define OUTHEAP_REGION_TABLE_H

#include "region_config.h"
#include <sys/mman.h>

struct outheap_region_table_slot { uintptr_t key, word; };
/* size: 0 or a power of two; 2 * count <= size */
struct outheap_region_table { struct outheap_region_table_slot *slot; size_t size, count; };

static inline size_t outheap_region_table_hash(uintptr_t key) { return (key * 0x9E3779B97F4A7C15u) >> 20; }

static inline void outheap_region_table_free(struct outheap_region_table *t)
{
  if (t->size != 0) munmap(t->slot, t->size * sizeof *t->slot);
  *t = (struct outheap_region_table){ NULL, 0, 0 };
}

static __attribute__((noinline, unused)) bool outheap_region_table_grow(struct outheap_region_table *t)
{
  struct outheap_region_table new = { NULL, t->size == 0 ? 1 << 10 : 2 * t->size, t->count };
  new.slot = mmap(NULL, new.size * sizeof *new.slot, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (new.slot == MAP_FAILED) return false;
  for (size_t i = 0; i < t->size; i++) {
    if (t->slot[i].key == 0) continue;
    size_t j = outheap_region_table_hash(t->slot[i].key) & (new.size - 1);
    while (new.slot[j].key != 0) j = (j + 1) & (new.size - 1);
    new.slot[j] = t->slot[i];
  }
  outheap_region_table_free(t);
  *t = new;
  return true;
}

/* The slot of a key, with key = 0 if it is not there: the caller may fill it, and then adds 1 to `count`. NULL: no
   memory. */
static inline struct outheap_region_table_slot *outheap_region_table_find(struct outheap_region_table *t, uintptr_t key)
{
  if (2 * (t->count + 1) > t->size && !outheap_region_table_grow(t)) return NULL;
  size_t j = outheap_region_table_hash(key) & (t->size - 1);
  while (t->slot[j].key != 0 && t->slot[j].key != key) j = (j + 1) & (t->size - 1);
  return &t->slot[j];
}

#endif
