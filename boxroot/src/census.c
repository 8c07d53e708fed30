/* SPDX-License-Identifier: MIT */
#include "census.h"
#include "checked/account.h"
#include "depot.h"
#include "os.h"
#include <string.h>

/* The pools are read beside their owners, which use plain accesses on the inline paths. */
#define READS_BESIDE_OWNERS __attribute__((no_sanitize("thread")))

static void set_bit(uint64_t *bits, size_t i) { bits[i / 64] |= (uint64_t)1 << (i % 64); }
static size_t word_of(uintptr_t slot) { return (slot & (BXR_POOL_SIZE - 1)) / sizeof(uintptr_t); }

#if BOXROOT_DEBUG
static void find_live(bxr_census *c)
{
  for (uint32_t i = 0; i < BXR_CAPACITY; i++)
    if (bxr_account_state(&c->pool->slots[i]) == BXR_SLOT_LIVE) {
      set_bit(c->live, word_of((uintptr_t)&c->pool->slots[i]));
      c->roots++;
    }
}
#else
static bool has_bit(uint64_t const *bits, size_t i) { return (bits[i / 64] >> (i % 64) & 1) != 0; }

/* If a word is a link to a slot of p, that slot is free. */
static void follow(uint64_t *free, bxr_pool *p, uintptr_t word)
{
  bool is_link = (word & 7) == 1 && word != BXR_FREE_END;
  if (is_link && (bxr_pool *)bxr_pool_of(word - 1) == p) set_bit(free, word_of(word - 1));
}

/* A slot is free if the list's head, or another slot, links to it. So the list need not be followed, which its owner
   may be changing; and its last slot, which looks as one that holds the integer 0, is told from that. An integer that
   looks like a link into its own pool would be miscounted. */
READS_BESIDE_OWNERS static void find_live(bxr_census *c)
{
  bxr_pool *p = c->pool;
  uint64_t free[BXR_PENDING_WORDS] = { 0 };
  uint32_t active = bxr_load_relaxed(&p->head.active), step = p->wider + 1u;
  if (active > BXR_CAPACITY) return;
  follow(free, p, bxr_load_relaxed(&p->head.free));
  for (uint32_t i = 0; i < active; i++) follow(free, p, bxr_load_relaxed(&p->slots[i]));
  uint64_t groups = bxr_load_relaxed(&p->pending_groups), *pending = bxr_segment_pending_words(p);
  for (; groups != 0; groups &= groups - 1) {
    unsigned g = (unsigned)__builtin_ctzll(groups);
    free[g] |= bxr_load_relaxed(&pending[g]);
  }
  for (uint32_t i = 0; i + step <= active; i += step) {
    size_t word = word_of((uintptr_t)&p->slots[i]);
    if (has_bit(free, word)) continue;
    set_bit(c->live, word);
    c->roots++;
  }
}
#endif

void bxr_census_take(void (*f)(void *data, bxr_census const *c), void *data)
{
  bxr_pool *p;
  for (uint64_t i = 0; bxr_depot_look(i, &p); i++) {
    if (p == NULL || bxr_domain_of(p) == NULL) continue;
    uint64_t name = bxr_load_relaxed(&p->storage);
    bxr_census c = { .pool = p, .storage = bxr_storage_find(name) };
    if (name != 0 && c.storage == NULL) continue; /* its roots were dropped */
    find_live(&c);
    if (c.roots > 0) f(data, &c);
  }
}

/* --- the cap ------------------------------------------------------------------------------------------------------ */

BXR_INTERNAL_DATA_HERE uint64_t bxr_census_cap;
static void (*when_reached)(uint64_t live, void *data);
static void *data_of_cap;
static uint64_t looks_left; /* so often may a domain get room before there can be too many roots (atomic) */
static bool cap_lock;

void bxr_census_set_cap(uint64_t roots, void (*reached)(uint64_t live, void *data), void *data)
{
  bxr_thread_lock(&cap_lock);
  when_reached = reached;
  data_of_cap = data;
  bxr_store_relaxed(&looks_left, (uint64_t)0);
  bxr_store_relaxed(&bxr_census_cap, roots);
  bxr_thread_unlock(&cap_lock);
}

typedef struct roots_and_pools { uint64_t roots, pools; } roots_and_pools;
static void add_roots(void *data, bxr_census const *c)
{
  ((roots_and_pools *)data)->roots += c->roots;
  ((roots_and_pools *)data)->pools++;
}

/* Roots are counted again when so many can have been added that the cap may be reached; but near it only when there may
   be a thirty-second more than there are, since counting takes as long as there are pools. */
void bxr_census_look(void)
{
  enum { INACCURACY = 32 };
  uint64_t left = bxr_load_relaxed(&looks_left);
  if (left > 0) {
    bxr_store_relaxed(&looks_left, left - 1);
    return;
  }
  roots_and_pools n = { 0 };
  bxr_census_take(add_roots, &n);
  bxr_thread_lock(&cap_lock);
  uint64_t cap = bxr_load_relaxed(&bxr_census_cap);
  void (*reached)(uint64_t, void *) = NULL;
  void *data = data_of_cap;
  if (n.roots <= cap) {
    uint64_t safe = (cap - n.roots) / BXR_CAPACITY, few = n.pools / INACCURACY;
    bxr_store_relaxed(&looks_left, safe > few ? safe : few);
  } else if (cap != 0) {
    reached = when_reached;
    bxr_store_relaxed(&bxr_census_cap, (uint64_t)0);
  }
  bxr_thread_unlock(&cap_lock);
  if (reached != NULL) reached(n.roots, data);
}
