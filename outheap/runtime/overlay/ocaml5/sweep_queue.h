/* SPDX-License-Identifier: MIT */
/* Part of shared_heap.c: pools that were handed over to be swept. sweeping.h has states, invariants, and the lock. The
   runtime's own function sweeps a pool, as a heap of the helper's: what it changes there is brought to the pool's heap
   afterwards, and a block with a finaliser to call it leaves as it is. So a pool with such blocks can be swept once
   more. */
#ifndef OH_SWEEP_QUEUE_H
#define OH_SWEEP_QUEUE_H

#include "helper.h"
#include "sweeping.h"

#if !OH_HELPER
static bool oh_sweeping_leaves(struct caml_heap_state *heap) { return (void)heap, false; }
static void oh_sweeping_give_up(struct caml_heap_state *h, pool *p, unsigned s) { pool_release(h, p, s); }
static void oh_sweeping_find(struct caml_heap_state *heap, unsigned sz) { (void)heap, (void)sz; }
static bool oh_sweeping_may_verify(struct caml_heap_state *heap) { return (void)heap, true; }
static void oh_sweeping_drain(struct caml_heap_state *heap) { (void)heap; }
static void *oh_sweeping_heap(size_t bytes) { return caml_stat_alloc_noexc(bytes); }
#else

enum {
  OH_SWEEPING_BATCH = 8,     /* pools that the helper has in hand: some 0.1 ms */
  OH_SWEEPING_TRIES = 64,    /* to get the lock */
  OH_SWEEPING_RELEASED = 64, /* empty pools that are given up when memory is wanted */
  OH_SWEEPING_LISTS = 2 * NUM_SIZECLASSES
};

struct oh_sweeping_list { pool *first, *last; };

struct oh_sweeping_queue {
  /* Its owner's. */
  struct caml_heap_state *heap;
  bool handed;
  pool *emptied; /* collected, and to be given up */
  /* Under the lock. Lists of size class s: s for pools with free blocks, and s + NUM_SIZECLASSES for full ones. */
  struct oh_sweeping_queue *next;
  pool *queued[OH_SWEEPING_LISTS];
  unsigned first;   /* lists before this one are empty */
  unsigned in_hand; /* pools */
  size_t back;      /* pools */
  struct oh_sweeping_list swept[OH_SWEEPING_LISTS], left[NUM_SIZECLASSES], empty;
  struct heap_stats stats; /* what the owner has to add, */
  uintnat swept_words, work;
};

static struct {
  pthread_mutex_t lock;
  struct oh_sweeping_queue *heaps; /* those with `handed` */
  unsigned waiting;                /* of these, those in which first < OH_SWEEPING_LISTS; also read without the lock */
} oh_sweeping = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The helper's own. */
static struct caml_heap_state oh_sweeping_helper_heap;
static caml_domain_state oh_sweeping_no_owner; /* owner of what is in hand: swept_words is counted there */
static bool oh_sweeping_left;
static pool *oh_sweeping_emptied;

static struct oh_sweeping_queue *oh_sweeping_of(struct caml_heap_state *heap)
{
  return (struct oh_sweeping_queue *)(heap + 1);
}

void *oh_sweeping_heap(size_t bytes)
{
  CAMLassert(bytes == sizeof(struct caml_heap_state));
  struct caml_heap_state *heap = caml_stat_alloc_noexc(bytes + sizeof(struct oh_sweeping_queue));
  if (heap == NULL) return NULL;
  *oh_sweeping_of(heap) = (struct oh_sweeping_queue){ .heap = heap, .first = OH_SWEEPING_LISTS };
  return heap;
}

void oh_sweeping_lock(void) { pthread_mutex_lock(&oh_sweeping.lock); }
void oh_sweeping_unlock(void) { pthread_mutex_unlock(&oh_sweeping.lock); }

/* For a moment at most: whoever holds it may have lost its processor. */
static bool oh_sweeping_try(void)
{
  for (int i = 0; i < OH_SWEEPING_TRIES; i++) {
    if (pthread_mutex_trylock(&oh_sweeping.lock) == 0) return true;
    cpu_relax();
  }
  return false;
}

bool oh_sweeping_waits(void) { return oh_load_relaxed(&oh_sweeping.waiting) != 0; }
bool oh_sweeping_is_handed(struct caml_heap_state *heap) { return oh_sweeping_of(heap)->handed; }

bool oh_sweeping_is_idle(void)
{
  if (!oh_sweeping_try()) return true;
  bool idle = oh_sweeping.heaps == NULL;
  oh_sweeping_unlock();
  return idle;
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

static void oh_sweeping_push(struct oh_sweeping_list *l, pool *p)
{
  p->next = l->first;
  if (l->first == NULL) l->last = p;
  l->first = p;
}

/* Puts all of a list before another one. */
static void oh_sweeping_move(struct oh_sweeping_list *l, pool **to)
{
  if (l->first == NULL) return;
  l->last->next = *to;
  *to = l->first;
  l->first = l->last = NULL;
}

/* Under the lock: one queued pool of a list, or NULL. */
static pool *oh_sweeping_pop(struct oh_sweeping_queue *q, unsigned list)
{
  pool *p = q->queued[list];
  if (p != NULL) q->queued[list] = p->next;
  return p;
}

/* Under the lock: any queued pool, first of those with free blocks, which allocation is waiting for. */
static pool *oh_sweeping_next(struct oh_sweeping_queue *q, unsigned *list)
{
  for (; q->first < OH_SWEEPING_LISTS; q->first++) {
    pool *p = oh_sweeping_pop(q, q->first);
    if (p != NULL) return *list = q->first, p;
    if (q->first == OH_SWEEPING_LISTS - 1) oh_store_relaxed(&oh_sweeping.waiting, oh_sweeping.waiting - 1);
  }
  return NULL;
}

/* Under the lock: the queue is empty, and its heap no longer one that has handed pools over. */
static void oh_sweeping_close(struct oh_sweeping_queue *q)
{
  struct oh_sweeping_queue **at = &oh_sweeping.heaps;
  while (*at != q) at = &(*at)->next;
  *at = q->next;
  q->handed = false;
}

/* --- in the owner ------------------------------------------------------------------------------------------------- */

void oh_sweeping_hand_over(struct caml_heap_state *heap)
{
  struct oh_sweeping_queue *q = oh_sweeping_of(heap);
  CAMLassert(!q->handed && q->emptied == NULL && q->in_hand == 0 && q->back == 0 && heap->owner == Caml_state);
  if (!oh_sweeping_try()) return;
  for (unsigned s = 0; s < NUM_SIZECLASSES; s++) {
    q->queued[s] = heap->unswept_avail_pools[s];
    q->queued[s + NUM_SIZECLASSES] = heap->unswept_full_pools[s];
    heap->unswept_avail_pools[s] = heap->unswept_full_pools[s] = NULL;
  }
  q->first = 0;
  q->handed = true;
  q->next = oh_sweeping.heaps;
  oh_sweeping.heaps = q;
  oh_store_relaxed(&oh_sweeping.waiting, oh_sweeping.waiting + 1);
  oh_sweeping_unlock();
}

/* Under the lock: whole lists, however long. Result: the work. */
static uintnat oh_sweeping_collect_locked(struct oh_sweeping_queue *q)
{
  struct caml_heap_state *heap = q->heap;
  uintnat work = q->work;
  if (q->back == 0) return 0;
  for (unsigned s = 0; s < NUM_SIZECLASSES; s++) {
    oh_sweeping_move(&q->swept[s], &heap->avail_pools[s]);
    oh_sweeping_move(&q->swept[s + NUM_SIZECLASSES], &heap->full_pools[s]);
    oh_sweeping_move(&q->left[s], &heap->unswept_avail_pools[s]);
  }
  oh_sweeping_move(&q->empty, &q->emptied);
  heap->next_to_sweep = 0;
  heap->stats.pool_live_blocks += q->stats.pool_live_blocks;
  heap->stats.pool_live_words += q->stats.pool_live_words;
  heap->stats.pool_frag_words += q->stats.pool_frag_words;
  heap->owner->swept_words += q->swept_words;
  memset(&q->stats, 0, sizeof q->stats);
  q->swept_words = q->work = 0;
  q->back = 0;
  return work;
}

static void oh_sweeping_release(struct oh_sweeping_queue *q, int most)
{
  for (; q->emptied != NULL && most != 0; most--) {
    pool *p = q->emptied;
    q->emptied = p->next;
    pool_release(q->heap, p, p->sz);
  }
}

intnat oh_sweeping_collect(struct caml_heap_state *heap, int most)
{
  struct oh_sweeping_queue *q = oh_sweeping_of(heap);
  intnat work = 0;
  if (!q->handed) return 0;
  if (most == OH_SWEEPING_ALL) oh_sweeping_lock();
  else if (!oh_sweeping_try()) return 0;
  work = (intnat)oh_sweeping_collect_locked(q);
  oh_sweeping_unlock();
  oh_sweeping_release(q, most);
  return work;
}

bool oh_sweeping_take(struct caml_heap_state *heap, unsigned most)
{
  struct oh_sweeping_queue *q = oh_sweeping_of(heap);
  unsigned taken = 0, list;
  if (!q->handed || !oh_sweeping_try()) return false;
  for (pool *p; taken < most && (p = oh_sweeping_next(q, &list)) != NULL; taken++) {
    pool **to = list < NUM_SIZECLASSES ? &heap->unswept_avail_pools[p->sz] : &heap->unswept_full_pools[p->sz];
    p->next = *to;
    *to = p;
  }
  oh_sweeping_unlock();
  if (taken != 0) heap->next_to_sweep = 0;
  return taken != 0;
}

/* In pool_find, when there is no pool with free blocks of a size. All that is back is collected; if there is none of
   this size among it, queued ones are swept here. */
static void oh_sweeping_find(struct caml_heap_state *heap, unsigned sz)
{
  struct oh_sweeping_queue *q = oh_sweeping_of(heap);
  if (__builtin_expect(!q->handed, 1)) return;
  while (heap->avail_pools[sz] == NULL && oh_sweeping_try()) {
    uintnat work = oh_sweeping_collect_locked(q);
    pool *p = heap->avail_pools[sz] == NULL ? oh_sweeping_pop(q, sz) : NULL;
    oh_sweeping_unlock();
#if OCAML_VERSION >= 50500
    Caml_state->sweep_work_done_between_slices += work;
#else
    Caml_state->major_work_done_between_slices += work;
#endif
    if (p == NULL) break;
    p->next = heap->unswept_avail_pools[sz];
    heap->unswept_avail_pools[sz] = p;
    heap->next_to_sweep = 0;
    /* As in pool_find: most have free blocks. */
#if OCAML_VERSION >= 50500
    Caml_state->sweep_work_done_between_slices += pool_sweep(heap, &heap->unswept_avail_pools[sz], sz, 0);
#else
    Caml_state->major_work_done_between_slices += pool_sweep(heap, &heap->unswept_avail_pools[sz], sz, 0);
#endif
  }
  if (heap->avail_pools[sz] == NULL) oh_sweeping_release(q, OH_SWEEPING_RELEASED);
}

bool oh_sweeping_ends(struct caml_heap_state *heap)
{
  struct oh_sweeping_queue *q = oh_sweeping_of(heap);
  if (!q->handed) return true;
  if (q->emptied != NULL || !oh_sweeping_try()) return false;
  unsigned list;
  bool over = q->in_hand == 0 && q->back == 0;
  if (over) {
    pool *p = oh_sweeping_next(q, &list); /* passes over lists that were emptied by oh_sweeping_find */
    if (p != NULL) {
      p->next = q->queued[list];
      q->queued[list] = p;
      over = false;
    }
  }
  if (over) oh_sweeping_close(q);
  oh_sweeping_unlock();
  return over;
}

/* In caml_sweep, which has nothing left to sweep: are the pools of the heap complete? */
static bool oh_sweeping_may_verify(struct caml_heap_state *heap) { return oh_sweeping_ends(heap); }

/* The runtime shuts down, and the helper has ended: all that was handed over is unswept again, so that the finalisers
   of what lives are called. */
static void oh_sweeping_drain(struct caml_heap_state *heap)
{
  struct oh_sweeping_queue *q = oh_sweeping_of(heap);
  if (!q->handed) return;
  oh_sweeping_lock();
  CAMLassert(q->in_hand == 0);
  for (unsigned s = 0; s < NUM_SIZECLASSES; s++) {
    oh_sweeping_move(&q->swept[s], &heap->unswept_avail_pools[s]);
    oh_sweeping_move(&q->swept[s + NUM_SIZECLASSES], &heap->unswept_full_pools[s]);
  }
  (void)oh_sweeping_collect_locked(q);
  unsigned list;
  for (pool *p; (p = oh_sweeping_next(q, &list)) != NULL;) {
    p->next = heap->unswept_full_pools[p->sz];
    heap->unswept_full_pools[p->sz] = p;
  }
  oh_sweeping_close(q);
  oh_sweeping_unlock();
  oh_sweeping_release(q, OH_SWEEPING_ALL);
}

/* --- in the helper ------------------------------------------------------------------------------------------------ */

/* In pool_sweep, before it calls the finaliser of a block: does the block stay, for its owner? */
static bool oh_sweeping_leaves(struct caml_heap_state *heap)
{
  if (heap != &oh_sweeping_helper_heap) return false;
  return oh_sweeping_left = true;
}

/* In pool_sweep, in the place of pool_release. */
static void oh_sweeping_give_up(struct caml_heap_state *heap, pool *p, unsigned sz)
{
  if (heap == &oh_sweeping_helper_heap) oh_sweeping_emptied = p;
  else pool_release(heap, p, sz);
}

/* Where a pool goes that was swept. The sum of work counts it if it is not to be swept once more. */
static struct oh_sweeping_list *oh_sweeping_one(struct oh_sweeping_queue *q, pool *p, uintnat *work)
{
  struct caml_heap_state *heap = &oh_sweeping_helper_heap;
  caml_domain_state *owner = p->owner;
  unsigned sz = p->sz;
  pool *list = p;
  p->next = NULL;
  p->owner = heap->owner = &oh_sweeping_no_owner;
  oh_sweeping_left = false;
  oh_sweeping_emptied = NULL;
  uintnat done = (uintnat)pool_sweep(heap, &list, sz, 1);
  bool full = heap->full_pools[sz] == p;
  heap->avail_pools[sz] = heap->full_pools[sz] = NULL;
  p->owner = owner;
  if (oh_sweeping_left) return &q->left[sz];
  *work += done;
  if (oh_sweeping_emptied != NULL) return &q->empty;
  return &q->swept[full ? sz + NUM_SIZECLASSES : sz];
}

unsigned oh_sweeping_batch(void)
{
  struct { pool *p; struct oh_sweeping_list *to; } some[OH_SWEEPING_BATCH];
  unsigned n = 0, list;
  uintnat work = 0;
  oh_sweeping_lock();
  struct oh_sweeping_queue *q = oh_sweeping.heaps;
  for (; q != NULL; q = q->next) {
    while (n < OH_SWEEPING_BATCH && (some[n].p = oh_sweeping_next(q, &list)) != NULL) n++;
    if (n != 0) break;
  }
  if (n != 0) q->in_hand += n;
  oh_sweeping_unlock();
  if (n == 0) return 0;
  memset(&oh_sweeping_helper_heap.stats, 0, sizeof oh_sweeping_helper_heap.stats);
  oh_sweeping_no_owner.swept_words = 0;
  for (unsigned i = 0; i < n; i++) some[i].to = oh_sweeping_one(q, some[i].p, &work);
  struct heap_stats const *s = &oh_sweeping_helper_heap.stats;
  oh_sweeping_lock();
  for (unsigned i = 0; i < n; i++) oh_sweeping_push(some[i].to, some[i].p);
  q->stats.pool_live_blocks += s->pool_live_blocks;
  q->stats.pool_live_words += s->pool_live_words;
  q->stats.pool_frag_words += s->pool_frag_words;
  q->swept_words += oh_sweeping_no_owner.swept_words;
  q->work += work;
  q->in_hand -= n;
  q->back += n;
  oh_sweeping_unlock();
  oh_helper_count(&oh_helper_counters.pools, n);
  oh_helper_count(&oh_helper_counters.swept, oh_sweeping_no_owner.swept_words);
  return n;
}
#endif
#endif
