/* SPDX-License-Identifier: MIT */
#include "region.h"
#include "account.h"
#include <errno.h>

/* Regions without a home. Taken as a whole, so that no region can leave and come back between a thread's look and its swap. */
static bxr_region *stock;
static uint64_t reserved_regions;

static void push_stock(bxr_region *first, bxr_region *last)
{
  bxr_region *head = bxr_load_relaxed(&stock);
  do last->next = head;
  while (!bxr_cas_seq_cst(&stock, &head, first));
}

static bxr_region *pop_stock(void)
{
  if (bxr_load_relaxed(&stock) == NULL) return NULL;
  bxr_region *r = bxr_exchange_seq_cst(&stock, (bxr_region *)NULL);
  if (r != NULL && r->next != NULL) {
    bxr_region *last = r->next;
    while (last->next != NULL) last = last->next;
    push_stock(r->next, last);
  }
  return r;
}

bxr_region *bxr_region_obtain(void)
{
  bxr_region *r = pop_stock();
  if (r == NULL) {
    r = bxr_os_reserve(BXR_REGION_SIZE);
    if (r == NULL) return NULL;
    bxr_add_relaxed(&reserved_regions, 1);
  }
  if (!bxr_account_open(r)) {
    push_stock(r, r);
    errno = ENOMEM;
    return NULL;
  }
  bxr_store_relaxed(&r->home, (struct bxr_domain *)NULL);
  r->next = r->prev = r;
  r->in_use = r->formatted = 1;
  return r;
}

void bxr_region_retire(bxr_region *r)
{
  BXR_ASSERT(r->in_use == 1);
  if (r->formatted != 1) bxr_os_decommit(bxr_region_pool(r, 1), BXR_REGION_SIZE - BXR_POOL_SIZE);
  r->formatted = 1;
  push_stock(r, r);
}

bxr_pool *bxr_region_take_pool(bxr_region *r)
{
  uint64_t unused = ~r->in_use;
  if (unused == 0) return NULL;
  /* Prefer a pool that has memory. */
  unsigned i = __builtin_ctzll((unused & r->formatted) != 0 ? unused & r->formatted : unused);
  bxr_pool *p = bxr_region_pool(r, i);
  if ((r->formatted >> i & 1) == 0) bxr_pool_format(p);
  r->in_use |= (uint64_t)1 << i;
  r->formatted |= (uint64_t)1 << i;
  return p;
}

void bxr_region_put_pool(bxr_pool *p)
{
  BXR_ASSERT(bxr_pool_is_empty(p));
  bxr_region *r = bxr_region_of(p);
  p->place = BXR_PLACE_NONE;
  bxr_pool_close(p);
  r->in_use &= ~((uint64_t)1 << bxr_pool_index(p));
}

bool bxr_region_decommit_one(bxr_region *r)
{
  uint64_t idle = r->formatted & ~r->in_use;
  if (idle == 0) return false;
  unsigned i = 63 - __builtin_clzll(idle);
  bxr_os_decommit(bxr_region_pool(r, i), BXR_POOL_SIZE);
  r->formatted &= ~((uint64_t)1 << i);
  return true;
}

uint64_t bxr_reserved_bytes(void) { return bxr_load_relaxed(&reserved_regions) * BXR_REGION_SIZE; }
