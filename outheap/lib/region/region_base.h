/* SPDX-License-Identifier: MIT */
/* What all files of this library share: the runtime's headers, and the little that differs between OCaml 4.14 and 5;
   how errors are filled in; arrays and hash tables that grow without malloc. */
#ifndef OUTHEAP_REGION_BASE_H
#define OUTHEAP_REGION_BASE_H

#ifndef CAML_INTERNALS
#define CAML_INTERNALS
#endif
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "outheap_region.h"
#include <caml/mlvalues.h>
#include <caml/version.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

_Static_assert(sizeof(value) == 8, "regions need 64 bits");

#define OUTHEAP_REGION_OCAML5 (OCAML_VERSION >= 50000)
#define OUTHEAP_REGION_WORD sizeof(value)
/* The unit in which the runtime variant classifies addresses (outheap_marker.h). */
#define OUTHEAP_REGION_CHUNK ((size_t)1 << 28)
/* Addresses have so many bits, which is what systems give at most to those who do not ask for more: Linux on arm64; on
   x86-64 it is one less. What is told by its address has a bit or an entry for each unit of these. */
#define OUTHEAP_REGION_ADDRESS_BITS 48
#define OUTHEAP_REGION_ADDRESSES ((uintptr_t)1 << OUTHEAP_REGION_ADDRESS_BITS)
#define OUTHEAP_REGION_ROUND(x, unit) (((x) + (unit) - 1) & ~((__typeof__(x))(unit) - 1))

/* The header of a block that the collector neither marks nor moves. */
#define OUTHEAP_REGION_BLACK ((header_t)3 << 8)
static inline header_t outheap_region_block_header(mlsize_t words, tag_t tag)
{
  return (header_t)words << 10 | OUTHEAP_REGION_BLACK | tag;
}
static inline bool outheap_region_block_is_black(header_t h) { return (~h & OUTHEAP_REGION_BLACK) == 0; }

/* From this tag up to Abstract_tag blocks are special. */
#ifdef Cont_tag
#define OUTHEAP_REGION_SPECIAL Forcing_tag
#else
#define OUTHEAP_REGION_SPECIAL Lazy_tag
#define Cont_tag 256 /* OCaml 4.14 has none of these two */
#define Forcing_tag 256
#endif

/* Does this setting count with this value? The runtime variant knows; over the stock runtime, OUTHEAP has it last, in a
   program without more rights than its caller. `otherwise`: what holds if it is not set. */
bool outheap_region_is_set(char const *name, char const *value, bool otherwise);

/* The monotonic clock, in nanoseconds. */
static inline uint64_t outheap_region_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- errors ----------------------------------------------------------------------------------------------------------
   These fill in what can go wrong (outheap_region.h). The first two return false, so that a function can end with
   `return outheap_region_error_is(…)`. */

static inline bool outheap_region_error_is(struct outheap_region_error *e, enum outheap_region_error_kind kind,
                                           char const *text)
{
  e->kind = kind;
  e->text = text;
  return false;
}

static inline bool outheap_region_error_system(struct outheap_region_error *e, char const *call, int number)
{
  if (number == ENOMEM) return outheap_region_error_is(e, OUTHEAP_REGION_NO_MEMORY, NULL);
  outheap_region_error_is(e, OUTHEAP_REGION_SYSTEM, call);
  e->number = (size_t)number;
  return false;
}

static inline void outheap_region_error_name(struct outheap_region_error *e, char const *name)
{
  size_t n = 0;
  for (; n < sizeof e->identifier - 1 && name[n] != 0; n++) e->identifier[n] = name[n];
  e->identifier[n] = 0;
}

/* --- vectors ---------------------------------------------------------------------------------------------------------
   A vector is an array of words that grows. Its memory comes from the system directly, in pages that are touched when
   they are written; malloc may be in use by a thread that is stopped in the middle of it. */

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

/* Returns false if there is no memory. */
static inline bool outheap_region_vector_push(struct outheap_region_vector *v, uintptr_t x)
{
  if (v->count == v->room && !outheap_region_vector_grow(v)) return false;
  v->word[v->count++] = x;
  return true;
}

/* --- tables ----------------------------------------------------------------------------------------------------------
   A table is a hash table from addresses, which are never 0, to words, with open addressing; it is at most half full.
   Its memory comes from the system as that of vectors does. */

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

/* Finds the slot of a key. Its `key` is 0 if the key is not there: then the caller may fill the slot, and adds 1 to
   `count`. Returns NULL if there is no memory. */
static inline struct outheap_region_table_slot *outheap_region_table_find(struct outheap_region_table *t, uintptr_t key)
{
  if (2 * (t->count + 1) > t->size && !outheap_region_table_grow(t)) return NULL;
  size_t j = outheap_region_table_hash(key) & (t->size - 1);
  while (t->slot[j].key != 0 && t->slot[j].key != key) j = (j + 1) & (t->size - 1);
  return &t->slot[j];
}

#endif
