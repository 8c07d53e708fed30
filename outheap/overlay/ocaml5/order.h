/* SPDX-License-Identifier: MIT */
/* Part of the redirected shared_heap.c: the order of pools before compaction.

   OCaml keeps as many pools from the front of a list as can hold the live blocks of all, and empties the others. Full pools it cannot empty. So pools go to the front whose
   large page will have to stay anyway, because of the full pools on it, and within the same number of those, by address. */
#ifndef OH_ORDER_H
#define OH_ORDER_H

/* Rather kept: the one whose page has more pools that stay; then the one with the lower address. */
static int oh_rather(pool const *a, pool const *b)
{
  unsigned x = oh_pool_pins(a), y = oh_pool_pins(b);
  return x != y ? x > y : a < b;
}

/* Merges two ordered lists. */
static pool *oh_merge(pool *a, pool *b)
{
  pool *result = NULL, **end = &result;
  while (a && b) {
    pool **least = oh_rather(a, b) ? &a : &b;
    *end = *least;
    end = &(*least)->next;
    *least = *end;
  }
  *end = a ? a : b;
  return result;
}

static pool *oh_sort(pool *list)
{
  pool *sorted[64] = {NULL}; /* sorted[i]: none, or 2^i pools */
  while (list) {
    pool *run = list;
    list = run->next;
    run->next = NULL;
    int i = 0;
    for (; sorted[i]; i++) {
      run = oh_merge(sorted[i], run);
      sorted[i] = NULL;
    }
    sorted[i] = run;
  }
  pool *all = NULL;
  for (int i = 0; i < 64; i++) all = oh_merge(sorted[i], all);
  return all;
}

static void oh_order_pools(struct caml_heap_state *heap)
{
  for (int size = 0; size < NUM_SIZECLASSES; size++)
    for (pool *p = heap->unswept_full_pools[size]; p; p = p->next) oh_pool_pin(p);
  for (int size = 0; size < NUM_SIZECLASSES; size++) heap->unswept_avail_pools[size] = oh_sort(heap->unswept_avail_pools[size]);
}

#endif
