/* SPDX-License-Identifier: MIT */
#include "fold.h"
#include "barrier.h"
#include "chain.h"
#include "fault.h"
#include "idle.h"
#include "place.h"
#include "quarantine.h"
#include "remote.h"

static void append_waiting(bxr_queue *q, bxr_pool *p)
{
  p->pending_next = NULL;
  if (q->first == NULL) q->first = p;
  else q->last->pending_next = p;
  q->last = p;
}

static bxr_pool *take_waiting(bxr_queue *q)
{
  bxr_pool *p = q->first;
  if (p != NULL) q->first = p->pending_next;
  return p;
}

/* Those that waited for the marker need not wait any longer. */
static void stop_waiting(bxr_domain *d)
{
  bxr_pool *p = d->to_wait.first;
  /* they waited for the same marker; the following ones are checked again in turn */
  if (p == NULL || bxr_barrier_needed(d, p)) return;
  d->to_wait.last->pending_next = d->to_fold;
  d->to_fold = p;
  d->to_wait = (bxr_queue){ NULL, NULL };
}

/* Puts the slots of one word on the free list. */
static void fold_word(bxr_pool *p, unsigned word, uint64_t bits)
{
  uintptr_t *first = (uintptr_t *)p + word * 64;
  uintptr_t free = p->head.free;
  p->head.freed += (uint32_t)__builtin_popcountll(bits);
  for (; bits != 0; bits &= bits - 1) {
    uintptr_t *slot = first + __builtin_ctzll(bits);
    *slot = free;
    free = (uintptr_t)slot + 1;
  }
  p->head.free = free;
}

/* A pool that changed its place or has room now. */
static void after_fold(bxr_domain *d, bxr_pool *p)
{
  if (bxr_pool_is_empty(p) && p != d->current && p != d->spare && !bxr_barrier_awaits_marker(d, p))
    bxr_idle_release(d, p);
  else bxr_place_freed(d, p);
}

/* The marker must not have to read p. When all roots are gone no slot need be touched (the checked build looks at each:
   it goes into quarantine first, and comes back here in its turn). */
static int64_t fold_pool(bxr_domain *d, bxr_pool *p)
{
  enum { POOL_COST = 64 };
  uint64_t *words = bxr_region_pending_words(p), groups = bxr_exchange_acq_rel(&p->pending_groups, (uint64_t)0);
  uint64_t bits[BXR_PENDING_WORDS];
  uint32_t n = 0;
  for (uint64_t m = groups; m != 0; m &= m - 1) {
    unsigned g = (unsigned)__builtin_ctzll(m);
    bits[g] = bxr_exchange_acq_rel(&words[g], (uint64_t)0);
    n += (uint32_t)__builtin_popcountll(bits[g]);
  }
  bool whole = !BOXROOT_DEBUG && p->exact && p->head.freed + n == BXR_CAPACITY && p != d->current &&
               !bxr_barrier_awaits_marker(d, p);
  if (whole) bxr_pool_reset(p);
  else
    for (uint64_t m = groups; m != 0; m &= m - 1) {
      unsigned g = (unsigned)__builtin_ctzll(m);
      fold_word(p, g, bits[g] & ~bxr_quarantine_put_bits((uintptr_t *)p + g * 64, bits[g], bxr_remote_delete));
    }
  bxr_count(&d->count.delete_remote, n);
  after_fold(d, p);
  return POOL_COST + (whole ? 0 : (int64_t)n);
}

int64_t bxr_fold_pending(bxr_domain *d, int64_t budget)
{
  enum { LOOK_COST = 4 };
  BXR_ASSERT(!d->scanning);
  stop_waiting(d);
  while (budget > 0) {
    bxr_pool *p = d->to_fold;
    if (p == NULL) {
      if (bxr_load_relaxed(&d->pending) == NULL) break;
      d->to_fold = bxr_exchange_seq_cst(&d->pending, (bxr_pool *)NULL);
      continue;
    }
    d->to_fold = p->pending_next;
    __builtin_prefetch(d->to_fold);
    budget -= LOOK_COST;
    if (BXR_UNLIKELY(!bxr_domain_owns(d, p))) bxr_remote_announce(p);
    else if (bxr_barrier_needed(d, p)) append_waiting(&d->to_wait, p);
    else budget -= fold_pool(d, p);
  }
  return budget;
}

/* The free slots that p will have when what is pending is folded. */
static uint32_t room_after_fold(bxr_pool *p)
{
  uint64_t *words = bxr_region_pending_words(p);
  bxr_pool_count(p);
  uint32_t n = p->head.freed;
  for (uint64_t m = bxr_load_relaxed(&p->pending_groups); m != 0; m &= m - 1)
    n += (uint32_t)__builtin_popcountll(bxr_load_relaxed(&words[__builtin_ctzll(m)]));
  return n;
}

bxr_pool *bxr_fold_one_waiting(bxr_domain *d, uint32_t worth, int candidates)
{
  bxr_pool *first = NULL;
  for (int i = 0; i < candidates; i++) {
    bxr_pool *p = take_waiting(&d->to_wait);
    if (p == NULL) return NULL;
    if (!bxr_barrier_other_marker(d, p) && room_after_fold(p) >= worth) {
      if (bxr_barrier_needed(d, p)) bxr_chain_darken(d, p);
      (void)fold_pool(d, p);
      return p;
    }
    append_waiting(&d->to_wait, p);
    if (p == first) return NULL; /* all were looked at */
    if (first == NULL) first = p;
  }
  return NULL;
}
