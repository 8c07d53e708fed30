/* SPDX-License-Identifier: MIT */
#include "drain.h"
#include "checked/account.h"
#include "delete.h"
#include "snapshot.h"

bool bxr_drain_has_work(bxr_domain *d)
{
  BXR_ASSERT_OWNER(d);
  return d->to_drain != NULL || d->waiting.first != NULL || bxr_load_relaxed(&d->pending) != NULL;
}

/* The queue of pools that wait for the marker. */
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

/* Moves the pools that waited for the marker to those that can be drained, if it has finished. */
static void stop_waiting(bxr_domain *d, bxr_barrier b)
{
  bxr_pool *p = d->waiting.first;
  /* All waited for the same marker; the following ones are checked again in turn. */
  if (p == NULL || bxr_pool_guarded(p, b)) return;
  d->waiting.last->pending_next = d->to_drain;
  d->to_drain = p;
  d->waiting = (bxr_queue){ NULL, NULL };
}

/* p has room now: moves it to the list where it belongs. */
static void after_drain(bxr_domain *d, bxr_pool *p, bxr_barrier b)
{
  if (bxr_pool_is_empty(p) && p != d->current && p != d->spare && !bxr_pool_unread(p, b))
    bxr_idle_release(d, p, b);
  else bxr_list_after_free(d, p, b);
}

/* Carries out what is pending at p, which the marker must not have to read. The result is the cost. When all roots are
   gone no slot need be touched (the checked build looks at each: it goes into quarantine first, and comes back here in
   its turn). */
static int64_t drain_pool(bxr_domain *d, bxr_pool *p, bxr_barrier b)
{
  enum { POOL_COST = 64 };
  uint64_t *words = bxr_segment_pending_words(p), groups = bxr_exchange_acq_rel(&p->pending_groups, (uint64_t)0);
  uint64_t bits[BXR_PENDING_WORDS];
  uint32_t n = 0;
  bool cleared = bxr_domain_has_cleared(d, p); /* then no slot goes back on the free list */
  for (uint64_t m = groups; m != 0; m &= m - 1) {
    unsigned g = (unsigned)__builtin_ctzll(m);
    bits[g] = bxr_exchange_acq_rel(&words[g], (uint64_t)0);
    n += (uint32_t)__builtin_popcountll(bits[g]);
  }
  bool whole = !BOXROOT_DEBUG && !cleared && p->freed_is_exact &&
               p->head.freed + n * (p->wider + 1u) == BXR_CAPACITY && p != d->current &&
               !bxr_pool_unread(p, b);
  for (uint64_t m = whole ? 0 : groups; m != 0; m &= m - 1) {
    unsigned g = (unsigned)__builtin_ctzll(m);
    uintptr_t *first = (uintptr_t *)p + g * 64;
    uint64_t rest = bits[g] & ~bxr_quarantine_put_bits(first, bits[g], p->wider, bxr_remote_delete);
    if (!cleared) bxr_pool_put_bits(p, first, rest);
  }
  if (whole) bxr_pool_reset(p);
  bxr_count(&d->count.delete_remote, n);
  if (!cleared) after_drain(d, p, b);
  return POOL_COST + (whole ? 0 : (int64_t)n * (p->wider + 1));
}

int64_t bxr_drain_pending(bxr_domain *d, bxr_barrier b, int64_t budget)
{
  enum { LOOK_COST = 4 };
  BXR_ASSERT_OWNER(d);
  BXR_ASSERT(!d->scanning);
  stop_waiting(d, b);
  while (budget > 0) {
    bxr_pool *p = d->to_drain;
    if (p == NULL) {
      if (bxr_load_relaxed(&d->pending) == NULL) break;
      d->to_drain = bxr_exchange_seq_cst(&d->pending, (bxr_pool *)NULL);
      continue;
    }
    d->to_drain = p->pending_next;
    __builtin_prefetch(d->to_drain);
    budget -= LOOK_COST;
    if (BXR_UNLIKELY(!bxr_domain_owns(d, p))) bxr_remote_enqueue(p);
    else if (bxr_pool_guarded(p, b)) append_waiting(&d->waiting, p);
    else budget -= drain_pool(d, p, b);
  }
  return budget;
}

/* The free slots that p will have when it is drained. */
static uint32_t room_after_drain(bxr_pool *p)
{
  uint64_t *words = bxr_segment_pending_words(p);
  bxr_pool_count(p);
  uint32_t n = p->head.freed;
  for (uint64_t m = bxr_load_relaxed(&p->pending_groups); m != 0; m &= m - 1)
    n += (uint32_t)__builtin_popcountll(bxr_load_relaxed(&words[__builtin_ctzll(m)])) * (p->wider + 1u);
  return n;
}

bxr_pool *bxr_drain_one_waiting(bxr_domain *d, bxr_barrier b, uint32_t worth, int candidates)
{
  BXR_ASSERT_OWNER(d);
  BXR_ASSERT(!d->scanning);
  bxr_pool *first = NULL;
  for (int i = 0; i < candidates; i++) {
    bxr_pool *p = take_waiting(&d->waiting);
    if (p == NULL) return NULL;
    if (!bxr_domain_has_cleared(d, p) && !bxr_pool_others(p, b) && room_after_drain(p) >= worth) {
      if (bxr_pool_guarded(p, b)) bxr_snapshot_darken(d, p);
      (void)drain_pool(d, p, b);
      return p;
    }
    append_waiting(&d->waiting, p);
    if (p == first) return NULL; /* all were looked at */
    if (first == NULL) first = p;
  }
  return NULL;
}
