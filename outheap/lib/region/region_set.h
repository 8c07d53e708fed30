/* SPDX-License-Identifier: MIT */
/* A set of blocks by their contents: header, but for its colour, and fields. Open addressing. Memory as in
   region_vector.h.

   A slot is 0, or has the address of a block in words, and above it as many bits of the block's hash as there is room
   for: nearly all blocks that are not equal are told apart without a look at them. Addresses have 48 bits, which is
   what systems give to those who do not ask for more. */
#ifndef OUTHEAP_REGION_SET_H
#define OUTHEAP_REGION_SET_H

#include "region_config.h"
#include <sys/mman.h>

/* size: a power of two; 4 * count <= 3 * size. Or all 0: it was not made. */
struct outheap_region_set { uint64_t *slot; size_t size, count; };

#define OUTHEAP_REGION_SET_ADDRESS 45 /* bits */

static inline header_t *outheap_region_set_header(value v) { return (header_t *)v - 1; }

static inline value outheap_region_set_block(uint64_t slot)
{
  return (value)((slot & ((UINT64_C(1) << OUTHEAP_REGION_SET_ADDRESS) - 1)) * OUTHEAP_REGION_WORD);
}

static inline bool outheap_region_set_may_be(uint64_t slot, uint64_t hash)
{
  return (slot ^ hash) >> OUTHEAP_REGION_SET_ADDRESS == 0;
}

static inline uint64_t outheap_region_set_mix(uint64_t h, uint64_t w)
{
  h = (h ^ w) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 29;
}

static inline uint64_t outheap_region_set_hash(value v, header_t h)
{
  uint64_t x = outheap_region_set_mix(0, h & ~OUTHEAP_REGION_BLACK);
  for (mlsize_t i = 0; i < Wosize_hd(h); i++) x = outheap_region_set_mix(x, (uint64_t)Field(v, i));
  return x ^ x >> 32;
}

/* An empty set with room for so many blocks at least. False: no memory. */
static inline bool outheap_region_set_make(struct outheap_region_set *s, size_t blocks)
{
  *s = (struct outheap_region_set){ NULL, (size_t)1 << 14, 0 };
  while (3 * s->size < 4 * (blocks + 1)) s->size *= 2;
  s->slot = mmap(NULL, s->size * sizeof *s->slot, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
  if (s->slot == MAP_FAILED) {
    *s = (struct outheap_region_set){ NULL, 0, 0 };
    return false;
  }
#ifdef MADV_HUGEPAGE
  /* It is used at random, and not for long. Maximal sharing takes about 5 % less time (1 to 7 %). */
  (void)madvise(s->slot, s->size * sizeof *s->slot, MADV_HUGEPAGE);
#endif
  return true;
}

static inline void outheap_region_set_drop(struct outheap_region_set *s)
{
  if (s->size != 0) munmap(s->slot, s->size * sizeof *s->slot);
}

static __attribute__((noinline, unused)) bool outheap_region_set_grow(struct outheap_region_set *s)
{
  struct outheap_region_set new;
  if (!outheap_region_set_make(&new, 2 * s->count)) return false;
  new.count = s->count;
  for (size_t i = 0; i < s->size; i++) {
    if (s->slot[i] == 0) continue;
    value v = outheap_region_set_block(s->slot[i]);
    size_t j = outheap_region_set_hash(v, *outheap_region_set_header(v)) & (new.size - 1);
    while (new.slot[j] != 0) j = (j + 1) & (new.size - 1);
    new.slot[j] = s->slot[i];
  }
  outheap_region_set_drop(s);
  *s = new;
  return true;
}

static inline bool outheap_region_set_same(value a, value b, header_t h)
{
  if (((*outheap_region_set_header(a) ^ h) & ~OUTHEAP_REGION_BLACK) != 0) return false;
  for (mlsize_t i = 0; i < Wosize_hd(h); i++)
    if (Field(a, i) != Field(b, i)) return false;
  return true;
}

/* The equal block that is there already, or `v`, which is there now; 0: no memory. `h`, `hash`: of v. */
static inline value outheap_region_set_enter(struct outheap_region_set *s, value v, header_t h, uint64_t hash)
{
  if (4 * (s->count + 1) > 3 * s->size && !outheap_region_set_grow(s)) return 0;
  size_t j = hash & (s->size - 1);
  for (; s->slot[j] != 0; j = (j + 1) & (s->size - 1)) {
    value there = outheap_region_set_block(s->slot[j]);
    if (outheap_region_set_may_be(s->slot[j], hash) && outheap_region_set_same(there, v, h)) return there;
  }
  s->slot[j] = (uint64_t)v / OUTHEAP_REGION_WORD | hash >> OUTHEAP_REGION_SET_ADDRESS << OUTHEAP_REGION_SET_ADDRESS;
  s->count++;
  return v;
}

/* Fetch what will be looked at: first the slot of a hash; later, when that is there, the block that it leads to. */
static inline void outheap_region_set_fetch_slot(struct outheap_region_set const *s, uint64_t hash)
{
  __builtin_prefetch(&s->slot[hash & (s->size - 1)]);
}

static inline void outheap_region_set_fetch_block(struct outheap_region_set const *s, uint64_t hash)
{
  uint64_t slot = s->slot[hash & (s->size - 1)];
  if (slot != 0 && outheap_region_set_may_be(slot, hash))
    __builtin_prefetch(outheap_region_set_header(outheap_region_set_block(slot)));
}

#endif
