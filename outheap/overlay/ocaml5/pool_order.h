/* SPDX-License-Identifier: MIT */
/* Part of shared_heap.c: the order of pools before compaction.

   OCaml keeps as many pools from the front of a list as can hold the live blocks of all, and empties the others. It
   cannot empty full pools. So the pools that go to the front are those whose large page has to stay anyway, because of
   the full pools on it; within the same number of those, pools are in the order of addresses. */
#ifndef OH_POOL_ORDER_H
#define OH_POOL_ORDER_H

/* Is `a` to be kept rather than `b`? */
static int oh_pool_order_before(pool *a, pool *b)
{
  unsigned x = oh_pool_pins(a), y = oh_pool_pins(b);
  return x != y ? x > y : a < b;
}

static pool *oh_pool_order_merge(pool *a, pool *b)
{
  pool *result = NULL, **end = &result;
  while (a && b) {
    pool **least = oh_pool_order_before(a, b) ? &a : &b;
    *end = *least;
    end = &(*least)->next;
    *least = *end;
  }
  *end = a ? a : b;
  return result;
}

static pool *oh_pool_order_sort(pool *list)
{
  pool *sorted[64] = {NULL}; /* sorted[i]: none, or 2^i pools */
  while (list) {
    pool *run = list;
    list = run->next;
    run->next = NULL;
    int i = 0;
    for (; sorted[i]; i++) {
      run = oh_pool_order_merge(sorted[i], run);
      sorted[i] = NULL;
    }
    sorted[i] = run;
  }
  pool *all = NULL;
  for (int i = 0; i < 64; i++) all = oh_pool_order_merge(sorted[i], all);
  return all;
}

static void oh_pool_order(struct caml_heap_state *heap)
{
  for (int size = 0; size < NUM_SIZECLASSES; size++)
    for (pool *p = heap->unswept_full_pools[size]; p; p = p->next) oh_pool_pin(p);
  for (int size = 0; size < NUM_SIZECLASSES; size++)
    heap->unswept_avail_pools[size] = oh_pool_order_sort(heap->unswept_avail_pools[size]);
}

#endif
