/* SPDX-License-Identifier: MIT */
#include "remote.h"
#include "checked/account.h"
#include "snapshot.h"

/* --- recording ---------------------------------------------------------------------------------------------------- */

static void push_pending(bxr_domain *home, bxr_pool *p)
{
  bxr_pool *head = bxr_load_relaxed(&home->pending);
  do p->pending_next = head;
  while (!bxr_cas_seq_cst(&home->pending, &head, p));
}

/* Puts p on the pending list of its home. The home may change meanwhile: it is stored before the new home's or the
   orphans' owner looks through the old list (bxr_remote_forward), and read again here after the addition to that list.
   One of the two sees the other. */
static void enqueue(bxr_pool *p)
{
  bxr_domain *home = bxr_load_seq_cst(&p->home);
  if (home == NULL) return; /* the root is from before a teardown */
  push_pending(home, p);
  if (BXR_UNLIKELY(bxr_load_seq_cst(&p->home) != home)) bxr_remote_forward(home);
}

static void enqueue_all(bxr_pool *p)
{
  while (p != NULL) {
    bxr_pool *next = p->pending_next;
    enqueue(p);
    p = next;
  }
}

void bxr_remote_forward(bxr_domain *d) { enqueue_all(bxr_exchange_seq_cst(&d->pending, (bxr_pool *)NULL)); }

void bxr_remote_forward_all(bxr_domain *d)
{
  enqueue_all(d->to_drain);
  enqueue_all(d->waiting.first);
  d->to_drain = NULL;
  d->waiting = (bxr_queue){ NULL, NULL };
  bxr_remote_forward(d);
}

static size_t index_of(boxroot r) { return ((uintptr_t)r & (BXR_POOL_SIZE - 1)) / sizeof(uintptr_t); }

/* The bits are known to be clear, so an addition sets them: processors have one instruction for an addition that
   returns the old value, and need a loop for an "or" that does. */
static void set_bits(bxr_pool *p, uint64_t *word, uint64_t bits)
{
  uint64_t before = bxr_fetch_add_acq_rel(word, bits);
  BXR_ASSERT((before & bits) == 0);
  if (BXR_LIKELY(before != 0)) return;
  uint64_t group = (uint64_t)1 << (word - bxr_segment_pending_words(p));
  if (bxr_fetch_add_acq_rel(&p->pending_groups, group) != 0) return;
  enqueue(p);
}

void bxr_remote_delete(boxroot r)
{
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  size_t i = index_of(r);
  set_bits(p, &bxr_segment_pending_words(p)[i / 64], (uint64_t)1 << (i % 64));
}

void bxr_remote_delete_batched(bxr_domain *me, boxroot r)
{
  if (bxr_remote_delete_in_batch(me, r)) return;
  bxr_remote_flush(me);
  bxr_store_release(&me->batch_group, (uintptr_t)r & ~(uintptr_t)(64 * sizeof(uintptr_t) - 1));
  me->batch_bits = (uint64_t)1 << (index_of(r) % 64);
}

void bxr_remote_flush(bxr_domain *me)
{
  if (me->batch_group == 0) return;
  boxroot r = (boxroot)me->batch_group;
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  set_bits(p, &bxr_segment_pending_words(p)[index_of(r) / 64], me->batch_bits);
  bxr_store_release(&me->batch_group, (uintptr_t)0);
}

void bxr_remote_list_batches(bxr_batches *out)
{
  out->n = 0;
  if (bxr_runtime_is_only_domain()) return;
  for (unsigned id = 0; id < bxr_load_relaxed(&bxr_domains_end) && out->n <= BXR_MOST_BATCHES; id++) {
    uintptr_t group = bxr_load_acquire(&bxr_domains[id].batch_group);
    if (group == 0) continue;
    if (out->n < BXR_MOST_BATCHES) out->pools[out->n] = (bxr_pool *)bxr_pool_of(group);
    out->n++;
  }
}

bool bxr_remote_batches_may_have(bxr_batches const *b, bxr_pool *p)
{
  for (unsigned i = 0; i < b->n && b->n <= BXR_MOST_BATCHES; i++)
    if (b->pools[i] == p) return true;
  return b->n > BXR_MOST_BATCHES;
}

void bxr_remote_discard(bxr_pool *p)
{
  uint64_t *words = bxr_segment_pending_words(p);
  for (uint64_t g = bxr_exchange_acq_rel(&p->pending_groups, (uint64_t)0); g != 0; g &= g - 1)
    (void)bxr_exchange_acq_rel(&words[__builtin_ctzll(g)], (uint64_t)0);
}

/* --- draining ----------------------------------------------------------------------------------------------------- */

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
static void stop_waiting(bxr_domain *d)
{
  bxr_pool *p = d->waiting.first;
  /* All waited for the same marker; the following ones are checked again in turn. */
  if (p == NULL || bxr_barrier_needed(d, p)) return;
  d->waiting.last->pending_next = d->to_drain;
  d->to_drain = p;
  d->waiting = (bxr_queue){ NULL, NULL };
}

/* Puts the slots of one word on the free list. */
static void drain_word(bxr_pool *p, unsigned word, uint64_t bits)
{
  uintptr_t *first = (uintptr_t *)p + word * 64;
  if (p->wider != 0) {
    for (; bits != 0; bits &= bits - 1) bxr_pool_put(p, first + __builtin_ctzll(bits));
    return;
  }
  uintptr_t free = p->head.free;
  p->head.freed += (uint32_t)__builtin_popcountll(bits);
  for (; bits != 0; bits &= bits - 1) {
    uintptr_t *slot = first + __builtin_ctzll(bits);
    *slot = free;
    free = (uintptr_t)slot + 1;
  }
  p->head.free = free;
}

/* p has room now: moves it to the list where it belongs. */
static void after_drain(bxr_domain *d, bxr_pool *p)
{
  if (bxr_pool_is_empty(p) && p != d->current && p != d->spare && !bxr_barrier_awaits_marker(d, p))
    bxr_idle_release(d, p);
  else bxr_list_after_free(d, p);
}

/* Carries out what is pending at p, which the marker must not have to read. The result is the cost. When all roots are
   gone no slot need be touched (the checked build looks at each: it goes into quarantine first, and comes back here in
   its turn). */
static int64_t drain_pool(bxr_domain *d, bxr_pool *p)
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
               !bxr_barrier_awaits_marker(d, p);
  if (whole) bxr_pool_reset(p);
  else
    for (uint64_t m = groups; m != 0; m &= m - 1) {
      unsigned g = (unsigned)__builtin_ctzll(m);
      uintptr_t *first = (uintptr_t *)p + g * 64;
      for (uint64_t b = bits[g]; BOXROOT_DEBUG && b != 0; b &= b - 1)
        bxr_quarantine_empty(first + __builtin_ctzll(b) + 1, p->wider);
      uint64_t rest = bits[g] & ~bxr_quarantine_put_bits(first, bits[g], bxr_remote_delete);
      if (!cleared) drain_word(p, g, rest);
    }
  bxr_count(&d->count.delete_remote, n);
  if (!cleared) after_drain(d, p);
  return POOL_COST + (whole ? 0 : (int64_t)n * (p->wider + 1));
}

int64_t bxr_drain_pending(bxr_domain *d, int64_t budget)
{
  enum { LOOK_COST = 4 };
  BXR_ASSERT(!d->scanning);
  stop_waiting(d);
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
    if (BXR_UNLIKELY(!bxr_domain_owns(d, p))) enqueue(p);
    else if (bxr_barrier_needed(d, p)) append_waiting(&d->waiting, p);
    else budget -= drain_pool(d, p);
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

bxr_pool *bxr_drain_one_waiting(bxr_domain *d, uint32_t worth, int candidates)
{
  bxr_pool *first = NULL;
  for (int i = 0; i < candidates; i++) {
    bxr_pool *p = take_waiting(&d->waiting);
    if (p == NULL) return NULL;
    if (!bxr_domain_has_cleared(d, p) && !bxr_barrier_other_marker(d, p) && room_after_drain(p) >= worth) {
      if (bxr_barrier_needed(d, p)) bxr_snapshot_darken(d, p);
      (void)drain_pool(d, p);
      return p;
    }
    append_waiting(&d->waiting, p);
    if (p == first) return NULL; /* all were looked at */
    if (first == NULL) first = p;
  }
  return NULL;
}
