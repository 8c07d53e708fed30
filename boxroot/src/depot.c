/* SPDX-License-Identifier: MIT */
#include "depot.h"
#include "checked/account.h"
#include "os.h"

/* The directory of all segments consists of leaves, which are made when they are needed. `available` has a bit for each
   segment of which a pool may be in the depot; a thread that finds none there clears the bit, looks again, and sets it
   again if there is one after all. */
enum { LEAF = 1024, LEAVES = 1024 };
typedef struct leaf {
  bxr_segment *segment[LEAF];    /* (atomic) */
  uint64_t available[LEAF / 64]; /* (atomic) */
} leaf;
static leaf *directory[LEAVES];
static uint64_t reserved_segments;

enum { MOST_KEPT = 64 };
static uint64_t kept; /* pools in the depot that have memory: about MOST_KEPT of them at most (atomic) */

/* --- the directory ------------------------------------------------------------------------------------------------ */

static leaf *leaf_of(uint64_t number)
{
  leaf **at = &directory[number / LEAF];
  leaf *l = bxr_load_acquire(at);
  if (l != NULL) return l;
  leaf *fresh = bxr_memory_map(sizeof(leaf));
  if (fresh == NULL) return NULL;
  if (bxr_cas_seq_cst(at, &l, fresh)) return fresh;
  bxr_memory_unmap(fresh, sizeof(leaf));
  return bxr_load_acquire(at);
}

static void offer(bxr_segment *s)
{
  leaf *l = bxr_load_acquire(&directory[s->number / LEAF]);
  bxr_fetch_or_seq_cst(&l->available[s->number % LEAF / 64], (uint64_t)1 << (s->number % 64));
}

/* Takes a pool of s from the depot; NULL when there is none. */
static bxr_pool *claim_in(bxr_segment *s)
{
  for (;;) {
    uint64_t unused = bxr_load_relaxed(&s->unused);
    if (unused == 0) return NULL;
    uint64_t dirty = unused & bxr_load_relaxed(&s->dirty); /* those with memory are preferred */
    uint64_t bit = dirty != 0 ? dirty & -dirty : unused & -unused;
    if ((bxr_fetch_and_seq_cst(&s->unused, ~bit) & bit) == 0) continue; /* another thread was faster */
    if ((bxr_fetch_or_seq_cst(&s->dirty, bit) & bit) != 0) bxr_add_relaxed(&kept, (uint64_t)-1);
    return bxr_segment_pool(s, (unsigned)__builtin_ctzll(bit));
  }
}

static bxr_pool *claim_reserved(void)
{
  uint64_t n = bxr_load_acquire(&reserved_segments);
  for (uint64_t first = 0; first < n; first += 64) {
    leaf *l = bxr_load_acquire(&directory[first / LEAF]);
    if (l == NULL) continue;
    uint64_t *word = &l->available[first % LEAF / 64];
    for (uint64_t m = bxr_load_relaxed(word); m != 0; m &= m - 1) {
      bxr_segment *s = bxr_load_acquire(&l->segment[first % LEAF + (unsigned)__builtin_ctzll(m)]);
      bxr_pool *p = claim_in(s);
      if (p != NULL) return p;
      bxr_fetch_and_seq_cst(word, ~(m & -m));
      if (bxr_load_seq_cst(&s->unused) != 0) bxr_fetch_or_seq_cst(word, m & -m);
    }
  }
  return NULL;
}

static bxr_segment *reserve(void)
{
  uint64_t number = bxr_load_relaxed(&reserved_segments);
  if (number >= LEAF * LEAVES) return NULL;
  bxr_segment *s = bxr_memory_reserve(BXR_SEGMENT_SIZE);
  if (s == NULL) return NULL;
  if (!bxr_account_open(s)) {
    bxr_memory_unmap(s, BXR_SEGMENT_SIZE);
    return NULL;
  }
  leaf *l;
  do {
    l = number < LEAF * LEAVES ? leaf_of(number) : NULL;
    if (l == NULL) {
      bxr_memory_unmap(s, BXR_SEGMENT_SIZE);
      return NULL;
    }
  } while (!bxr_cas_seq_cst(&reserved_segments, &number, number + 1));
  s->number = number;
  s->unused = ~(uint64_t)3; /* the first is the header, the second the caller's */
  s->dirty = 2;
  bxr_store_release(&l->segment[number % LEAF], s);
  offer(s);
  return s;
}

bool bxr_depot_has(bxr_pool *p)
{
  bxr_segment *s = bxr_segment_of(p);
  if (s->number >= LEAF * LEAVES) return false;
  leaf *l = bxr_load_acquire(&directory[s->number / LEAF]);
  return l != NULL && bxr_load_acquire(&l->segment[s->number % LEAF]) == s;
}

bool bxr_depot_look(uint64_t i, bxr_pool **p)
{
  uint64_t number = i / 64;
  if (number >= bxr_load_acquire(&reserved_segments)) return false;
  leaf *l = bxr_load_acquire(&directory[number / LEAF]);
  bxr_segment *s = l == NULL ? NULL : bxr_load_acquire(&l->segment[number % LEAF]);
  bool is_out = s != NULL && i % 64 != 0 && (bxr_load_relaxed(&s->unused) >> (i % 64) & 1) == 0;
  *p = is_out ? bxr_segment_pool(s, i % 64) : NULL;
  return true;
}

bxr_pool *bxr_depot_claim(void)
{
  bxr_pool *p = claim_reserved();
  if (p == NULL) {
    bxr_segment *s = reserve();
    if (s == NULL) {
      errno = ENOMEM;
      return NULL;
    }
    p = bxr_segment_pool(s, 1);
  }
  bxr_pool_format(p);
  return p;
}

/* --- returning ---------------------------------------------------------------------------------------------------- */

static void disclaim(bxr_segment *s, uint64_t pools)
{
  if (pools != 0 && bxr_fetch_or_seq_cst(&s->unused, pools) == 0) offer(s);
}

/* The pools of those pages of the system that are wholly in `pools`; `per_page` of them share one. */
static uint64_t whole_pages(uint64_t pools, unsigned per_page)
{
  uint64_t one = per_page >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << per_page) - 1, whole = 0;
  for (unsigned i = 0; i < 64; i += per_page)
    if ((pools >> i & one) == one) whole |= one << i;
  return whole;
}

/* Purges the memory of these pools of s, which are the caller's, and then returns the pools. On systems with large
   pages neighbours in the depot are taken along: only whole pages can be purged. */
static void return_pools(bxr_segment *s, uint64_t pools)
{
  size_t page = bxr_memory_page_size();
  unsigned per_page = page <= BXR_POOL_SIZE ? 1 : page >= BXR_SEGMENT_SIZE ? 64 : (unsigned)(page / BXR_POOL_SIZE);
  uint64_t neighbours = 0;
  if (per_page > 1) {
    for (unsigned i = 0; i < 64; i += per_page) {
      uint64_t all = per_page >= 64 ? ~(uint64_t)0 : (((uint64_t)1 << per_page) - 1) << i;
      if ((pools & all) != 0) neighbours |= all & ~pools;
    }
    neighbours &= bxr_fetch_and_seq_cst(&s->unused, ~neighbours);
  }
  uint64_t whole = per_page == 1 ? pools : whole_pages(pools | neighbours, per_page);
  for (uint64_t m = whole; m != 0;) {
    unsigned from = (unsigned)__builtin_ctzll(m);
    unsigned length = ~(m >> from) == 0 ? 64 : (unsigned)__builtin_ctzll(~(m >> from));
    uint64_t run = (length == 64 ? ~(uint64_t)0 : ((uint64_t)1 << length) - 1) << from;
    if (bxr_memory_purge(bxr_segment_pool(s, from), length * BXR_POOL_SIZE)) {
      bxr_add_relaxed(&kept, -(uint64_t)__builtin_popcountll(bxr_load_relaxed(&s->dirty) & run & neighbours));
      bxr_fetch_and_seq_cst(&s->dirty, ~run);
    }
    m &= ~run;
  }
  bxr_add_relaxed(&kept, (uint64_t)__builtin_popcountll(bxr_load_relaxed(&s->dirty) & pools));
  disclaim(s, pools | neighbours);
}

unsigned bxr_depot_return(bxr_pool **pools, unsigned n, bool all)
{
  for (unsigned i = 1; i < n; i++) { /* they are few, and usually nearly sorted */
    bxr_pool *p = pools[i];
    unsigned j = i;
    for (; j > 0 && pools[j - 1] > p; j--) pools[j] = pools[j - 1];
    pools[j] = p;
  }
  unsigned i = 0, given = 0;
  while (i < n) {
    bxr_segment *s = bxr_segment_of(pools[i]);
    uint64_t mask = 0;
    for (; i < n && bxr_segment_of(pools[i]) == s; i++) {
      BXR_ASSERT(bxr_pool_is_empty(pools[i]) && bxr_load_relaxed(&pools[i]->pending_groups) == 0);
      bxr_pool_close(pools[i]);
      bxr_store_seq_cst(&pools[i]->home, (struct bxr_domain *)NULL);
      uint64_t bit = (uint64_t)1 << bxr_segment_index(pools[i]);
      if (all || bxr_load_relaxed(&kept) >= MOST_KEPT) mask |= bit;
      else {
        bxr_add_relaxed(&kept, 1);
        disclaim(s, bit);
      }
    }
    given += (unsigned)__builtin_popcountll(mask);
    if (mask != 0) return_pools(s, mask);
  }
  return given;
}

void bxr_depot_trim(void)
{
  uint64_t n = bxr_load_acquire(&reserved_segments);
  for (uint64_t i = 0; i < n; i++) {
    leaf *l = bxr_load_acquire(&directory[i / LEAF]);
    bxr_segment *s = l == NULL ? NULL : bxr_load_acquire(&l->segment[i % LEAF]);
    if (s == NULL) continue;
    uint64_t idle = bxr_load_relaxed(&s->unused) & bxr_load_relaxed(&s->dirty);
    idle &= bxr_fetch_and_seq_cst(&s->unused, ~idle);
    if (idle == 0) continue;
    bxr_add_relaxed(&kept, -(uint64_t)__builtin_popcountll(idle));
    return_pools(s, idle);
  }
}

void bxr_depot_release(void)
{
  uint64_t n = bxr_exchange_seq_cst(&reserved_segments, (uint64_t)0);
  for (uint64_t i = 0; i < n; i++) {
    leaf *l = bxr_load_acquire(&directory[i / LEAF]);
    if (l == NULL) continue;
    bxr_segment *s = l->segment[i % LEAF];
    if (s != NULL && s->tags != NULL) bxr_memory_unmap(s->tags, BXR_SEGMENT_TAGS * sizeof *s->tags);
    if (s != NULL) bxr_memory_unmap(s, BXR_SEGMENT_SIZE);
    if (i % LEAF == LEAF - 1 || i == n - 1) {
      directory[i / LEAF] = NULL;
      bxr_memory_unmap(l, sizeof(leaf));
    }
  }
  bxr_memory_release();
}

uint64_t bxr_depot_reserved_bytes(void) { return bxr_load_relaxed(&reserved_segments) * BXR_SEGMENT_SIZE; }
