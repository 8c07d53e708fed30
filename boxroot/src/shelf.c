/* SPDX-License-Identifier: MIT */
#include "shelf.h"

static bxr_pool *shelf[BXR_SHELF_PLACES]; /* (atomic) */
static uint64_t on_shelf;                 /* at least the pools on the shelf (atomic) */
static uint64_t short_of;                 /* pools that were looked for, and not supplied since, about (atomic) */
static uint64_t patience;                 /* cycles for which that still counts (atomic) */

/* The pool is counted before it can be found, and until it was taken, so that a count of none is true. */
bool bxr_shelf_put(bxr_pool *p)
{
  (void)bxr_fetch_add_acq_rel(&on_shelf, (uint64_t)1);
  for (unsigned i = 0; i < BXR_SHELF_PLACES; i++) {
    bxr_pool *there = bxr_load_relaxed(&shelf[i]);
    while (there == NULL)
      if (bxr_cas_seq_cst(&shelf[i], &there, p)) return true;
  }
  (void)bxr_fetch_add_acq_rel(&on_shelf, -(uint64_t)1);
  return false;
}

bxr_pool *bxr_shelf_take(void)
{
  if (bxr_shelf_count() == 0) return NULL;
  for (unsigned i = 0; i < BXR_SHELF_PLACES; i++) {
    if (bxr_load_relaxed(&shelf[i]) == NULL) continue;
    bxr_pool *p = bxr_exchange_seq_cst(&shelf[i], (bxr_pool *)NULL);
    if (p == NULL) continue;
    (void)bxr_fetch_add_acq_rel(&on_shelf, -(uint64_t)1);
    return p;
  }
  return NULL;
}

bxr_pool *bxr_shelf_take_all(bxr_pool *others)
{
  uint64_t n = 0;
  for (bxr_pool *p; (p = bxr_shelf_take()) != NULL; n++) {
    p->next = others;
    others = p;
  }
  if (n != 0 && bxr_load_relaxed(&patience) != 0) bxr_add_relaxed(&short_of, n);
  return others;
}

void bxr_shelf_new_cycle(void)
{
  uint64_t left = bxr_load_relaxed(&patience);
  if (left != 0) bxr_store_relaxed(&patience, left - 1);
  else if (bxr_load_relaxed(&short_of) != 0) bxr_store_relaxed(&short_of, (uint64_t)0);
}

uint64_t bxr_shelf_count(void) { return bxr_load_relaxed(&on_shelf); }

void bxr_shelf_want(void)
{
  enum { PATIENCE = 16 }; /* a full collection has three cycles, in which the program wants nothing */
  if (bxr_load_relaxed(&patience) != PATIENCE) bxr_store_relaxed(&patience, (uint64_t)PATIENCE);
  if (bxr_load_relaxed(&short_of) < BXR_SHELF_PLACES / 2) bxr_add_relaxed(&short_of, 1);
}

uint64_t bxr_shelf_wanted(void)
{
  uint64_t n = bxr_load_relaxed(&short_of), there = bxr_shelf_count();
  return n > there ? n - there : 0;
}

void bxr_shelf_supplied(uint64_t n)
{
  uint64_t before = bxr_load_relaxed(&short_of);
  bxr_store_relaxed(&short_of, before > n ? before - n : 0);
}
