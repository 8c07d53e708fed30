/* SPDX-License-Identifier: MIT */
/* An array of words that grows. Its memory comes from the system directly, in pages that are touched when they are
   written; malloc may be in use by a thread that is stopped in the middle of it. */
#ifndef OUTHEAP_REGION_VECTOR_H
#define OUTHEAP_REGION_VECTOR_H

#include "region_config.h"
#include <sys/mman.h>

/* count <= room */
struct outheap_region_vector { uintptr_t *word; size_t count, room; };

static inline void outheap_region_vector_free(struct outheap_region_vector *v)
{
  if (v->room != 0) munmap(v->word, v->room * sizeof *v->word);
  *v = (struct outheap_region_vector){ NULL, 0, 0 };
}

static __attribute__((noinline, unused)) bool outheap_region_vector_grow(struct outheap_region_vector *v)
{
  size_t room = v->room == 0 ? (size_t)1 << 13 : 2 * v->room;
  void *new = v->room == 0 ? mmap(NULL, room * sizeof *v->word, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                           : mremap(v->word, v->room * sizeof *v->word, room * sizeof *v->word, MREMAP_MAYMOVE);
  if (new == MAP_FAILED) return false;
  v->word = new;
  v->room = room;
  return true;
}

/* False: no memory. */
static inline bool outheap_region_vector_push(struct outheap_region_vector *v, uintptr_t x)
{
  if (v->count == v->room && !outheap_region_vector_grow(v)) return false;
  v->word[v->count++] = x;
  return true;
}

#endif
