/* SPDX-License-Identifier: MIT */
#include "depot.h"
#include "account.h"
#include "memory.h"

/* The directory of all regions, in leaves that are made when they are needed. `available` has a bit for each region of
   which a pool may be in the depot; a thread that finds none there clears it, looks again, and sets it again if there
   is one after all. */
enum { LEAF = 1024, LEAVES = 1024 };
typedef struct leaf {
  bxr_region *region[LEAF];      /* (atomic) */
  uint64_t available[LEAF / 64]; /* (atomic) */
} leaf;
static leaf *directory[LEAVES];
static uint64_t reserved_regions;

/* Pools in the depot that have memory: about KEPT of them at most. */
enum { KEPT = 64 };
static uint64_t kept; /* (atomic) */

/* --- the directory ------------------------------------------------------------------------------------------------ */

static leaf *leaf_of(uint64_t number)
{
  leaf **place = &directory[number / LEAF];
  leaf *l = bxr_load_acquire(place);
  if (l != NULL) return l;
  leaf *fresh = bxr_memory_map(sizeof(leaf));
  if (fresh == NULL) return NULL;
  if (bxr_cas_seq_cst(place, &l, fresh)) return fresh;
  bxr_memory_unmap(fresh, sizeof(leaf));
  return bxr_load_acquire(place);
}

static void offer(bxr_region *r)
{
  leaf *l = bxr_load_acquire(&directory[r->number / LEAF]);
  bxr_fetch_or_seq_cst(&l->available[r->number % LEAF / 64], (uint64_t)1 << (r->number % 64));
}

/* Takes a pool of r from the depot; NULL when there is none. */
static bxr_pool *claim_in(bxr_region *r)
{
  for (;;) {
    uint64_t unused = bxr_load_relaxed(&r->unused);
    if (unused == 0) return NULL;
    uint64_t dirty = unused & bxr_load_relaxed(&r->dirty); /* preferred: it has memory */
    uint64_t bit = dirty != 0 ? dirty & -dirty : unused & -unused;
    if ((bxr_fetch_and_seq_cst(&r->unused, ~bit) & bit) == 0) continue; /* another thread was faster */
    if ((bxr_fetch_or_seq_cst(&r->dirty, bit) & bit) != 0) bxr_add_relaxed(&kept, (uint64_t)-1);
    return bxr_region_pool(r, (unsigned)__builtin_ctzll(bit));
  }
}

static bxr_pool *claim_reserved(void)
{
  uint64_t n = bxr_load_acquire(&reserved_regions);
  for (uint64_t first = 0; first < n; first += 64) {
    leaf *l = bxr_load_acquire(&directory[first / LEAF]);
    if (l == NULL) continue;
    uint64_t *word = &l->available[first % LEAF / 64];
    for (uint64_t m = bxr_load_relaxed(word); m != 0; m &= m - 1) {
      bxr_region *r = bxr_load_acquire(&l->region[first % LEAF + (unsigned)__builtin_ctzll(m)]);
      bxr_pool *p = claim_in(r);
      if (p != NULL) return p;
      bxr_fetch_and_seq_cst(word, ~(m & -m));
      if (bxr_load_seq_cst(&r->unused) != 0) bxr_fetch_or_seq_cst(word, m & -m);
    }
  }
  return NULL;
}

static bxr_region *reserve(void)
{
  uint64_t number = bxr_load_relaxed(&reserved_regions);
  if (number >= LEAF * LEAVES) return NULL;
  bxr_region *r = bxr_memory_reserve(BXR_REGION_SIZE);
  if (r == NULL) return NULL;
  if (!bxr_account_open(r)) {
    bxr_memory_unmap(r, BXR_REGION_SIZE);
    return NULL;
  }
  leaf *l;
  do {
    l = number < LEAF * LEAVES ? leaf_of(number) : NULL;
    if (l == NULL) {
      bxr_memory_unmap(r, BXR_REGION_SIZE);
      return NULL;
    }
  } while (!bxr_cas_seq_cst(&reserved_regions, &number, number + 1));
  r->number = number;
  r->unused = ~(uint64_t)3; /* the first is the header, the second the caller's */
  r->dirty = 2;
  bxr_store_release(&l->region[number % LEAF], r);
  offer(r);
  return r;
}

bxr_pool *bxr_depot_claim(void)
{
  bxr_pool *p = claim_reserved();
  if (p == NULL) {
    bxr_region *r = reserve();
    if (r == NULL) {
      errno = ENOMEM;
      return NULL;
    }
    p = bxr_region_pool(r, 1);
  }
  bxr_pool_format(p);
  return p;
}

/* --- returning ---------------------------------------------------------------------------------------------------- */

static void disclaim(bxr_region *r, uint64_t pools)
{
  if (pools != 0 && bxr_fetch_or_seq_cst(&r->unused, pools) == 0) offer(r);
}

/* The pools of the groups that are wholly in `pools`; a group shares a page of the system. */
static uint64_t whole_groups(uint64_t pools, unsigned group)
{
  uint64_t one = group >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << group) - 1, whole = 0;
  for (unsigned i = 0; i < 64; i += group)
    if ((pools >> i & one) == one) whole |= one << i;
  return whole;
}

/* Purges the memory of these pools of r, which are the caller's, and then returns the pools. On systems with large
   pages neighbours in the depot are taken along: only whole pages can be purged. */
static void return_pools(bxr_region *r, uint64_t pools)
{
  size_t page = bxr_memory_page_size();
  unsigned group = page <= BXR_POOL_SIZE ? 1 : page >= BXR_REGION_SIZE ? 64 : (unsigned)(page / BXR_POOL_SIZE);
  uint64_t neighbours = 0;
  if (group > 1) {
    for (unsigned i = 0; i < 64; i += group) {
      uint64_t all = group >= 64 ? ~(uint64_t)0 : (((uint64_t)1 << group) - 1) << i;
      if ((pools & all) != 0) neighbours |= all & ~pools;
    }
    neighbours &= bxr_fetch_and_seq_cst(&r->unused, ~neighbours);
  }
  uint64_t whole = group == 1 ? pools : whole_groups(pools | neighbours, group);
  for (uint64_t m = whole; m != 0;) {
    unsigned from = (unsigned)__builtin_ctzll(m);
    unsigned length = ~(m >> from) == 0 ? 64 : (unsigned)__builtin_ctzll(~(m >> from));
    uint64_t run = (length == 64 ? ~(uint64_t)0 : ((uint64_t)1 << length) - 1) << from;
    if (bxr_memory_purge(bxr_region_pool(r, from), length * BXR_POOL_SIZE)) {
      bxr_add_relaxed(&kept, -(uint64_t)__builtin_popcountll(bxr_load_relaxed(&r->dirty) & run & neighbours));
      bxr_fetch_and_seq_cst(&r->dirty, ~run);
    }
    m &= ~run;
  }
  bxr_add_relaxed(&kept, (uint64_t)__builtin_popcountll(bxr_load_relaxed(&r->dirty) & pools));
  disclaim(r, pools | neighbours);
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
    bxr_region *r = bxr_region_of(pools[i]);
    uint64_t mask = 0;
    for (; i < n && bxr_region_of(pools[i]) == r; i++) {
      BXR_ASSERT(bxr_pool_is_empty(pools[i]) && bxr_load_relaxed(&pools[i]->pending_groups) == 0);
      bxr_pool_close(pools[i]);
      bxr_store_seq_cst(&pools[i]->home, (struct bxr_domain *)NULL);
      uint64_t bit = (uint64_t)1 << bxr_region_index(pools[i]);
      if (all || bxr_load_relaxed(&kept) >= KEPT) mask |= bit;
      else {
        bxr_add_relaxed(&kept, 1);
        disclaim(r, bit);
      }
    }
    given += (unsigned)__builtin_popcountll(mask);
    if (mask != 0) return_pools(r, mask);
  }
  return given;
}

void bxr_depot_trim(void)
{
  uint64_t n = bxr_load_acquire(&reserved_regions);
  for (uint64_t i = 0; i < n; i++) {
    leaf *l = bxr_load_acquire(&directory[i / LEAF]);
    bxr_region *r = l == NULL ? NULL : bxr_load_acquire(&l->region[i % LEAF]);
    if (r == NULL) continue;
    uint64_t idle = bxr_load_relaxed(&r->unused) & bxr_load_relaxed(&r->dirty);
    idle &= bxr_fetch_and_seq_cst(&r->unused, ~idle);
    if (idle == 0) continue;
    bxr_add_relaxed(&kept, -(uint64_t)__builtin_popcountll(idle));
    return_pools(r, idle);
  }
}

void bxr_depot_release(void)
{
  uint64_t n = __atomic_exchange_n(&reserved_regions, (uint64_t)0, __ATOMIC_SEQ_CST);
  for (uint64_t i = 0; i < n; i++) {
    leaf *l = bxr_load_acquire(&directory[i / LEAF]);
    if (l == NULL) continue;
    if (l->region[i % LEAF] != NULL) bxr_memory_unmap(l->region[i % LEAF], BXR_REGION_SIZE);
    if (i % LEAF == LEAF - 1 || i == n - 1) {
      directory[i / LEAF] = NULL;
      bxr_memory_unmap(l, sizeof(leaf));
    }
  }
  bxr_memory_release();
}

uint64_t bxr_depot_reserved_bytes(void) { return bxr_load_relaxed(&reserved_regions) * BXR_REGION_SIZE; }
