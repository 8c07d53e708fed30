/* SPDX-License-Identifier: MIT */
#include "remote.h"
#include "chain.h"

static void push(bxr_domain *home, bxr_pool *p)
{
  bxr_pool *head = bxr_load_relaxed(&home->pending);
  do p->pending_next = head;
  while (!bxr_cas_seq_cst(&home->pending, &head, p));
}

/* Puts p on the pending list of its home. The home may change meanwhile: it is stored before the new home's or the orphanage's keeper
   looks through the old list (bxr_remote_forward), and read again here after the addition to it. One of the two sees the other. */
static void announce(bxr_pool *p)
{
  bxr_domain *home = bxr_load_seq_cst(&p->home);
  if (home == NULL) return; /* a void root, from before a teardown */
  push(home, p);
  if (BXR_UNLIKELY(bxr_load_seq_cst(&p->home) != home)) bxr_remote_forward(home);
}

static void announce_all(bxr_pool *p)
{
  while (p != NULL) {
    bxr_pool *next = p->pending_next;
    announce(p);
    p = next;
  }
}

void bxr_remote_forward(bxr_domain *d) { announce_all(bxr_exchange_seq_cst(&d->pending, (bxr_pool *)NULL)); }

void bxr_remote_forward_all(bxr_domain *d)
{
  announce_all(d->to_fold);
  announce_all(d->to_wait.first);
  d->to_fold = NULL;
  d->to_wait = (bxr_queue){ NULL, NULL };
  bxr_remote_forward(d);
}

static size_t index_of(boxroot r) { return ((uintptr_t)r & (BXR_POOL_SIZE - 1)) / sizeof(uintptr_t); }

/* The bits are known to be clear, so adding sets them; processors have an instruction for that, and a loop for the other way. */
static void set_bits(bxr_pool *p, uint64_t *word, uint64_t bits)
{
  uint64_t before = bxr_fetch_add_acq_rel(word, bits);
  BXR_ASSERT((before & bits) == 0);
  if (BXR_LIKELY(before != 0)) return;
  uint64_t group = (uint64_t)1 << (word - bxr_pending_words(p));
  if (bxr_fetch_add_acq_rel(&p->pending_groups, group) != 0) return;
  announce(p);
}

void bxr_remote_delete(boxroot r)
{
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  size_t i = index_of(r);
  set_bits(p, &bxr_pending_words(p)[i / 64], (uint64_t)1 << (i % 64));
}

void bxr_remote_delete_by(bxr_domain *me, boxroot r)
{
  if (bxr_remote_delete_neighbour(me, r)) return;
  bxr_remote_flush(me);
  me->out_group = (uintptr_t)r & ~(uintptr_t)(64 * sizeof(uintptr_t) - 1);
  me->out_bits = (uint64_t)1 << (index_of(r) % 64);
}

void bxr_remote_flush(bxr_domain *me)
{
  if (me->out_group == 0) return;
  boxroot r = (boxroot)me->out_group;
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  set_bits(p, &bxr_pending_words(p)[index_of(r) / 64], me->out_bits);
  me->out_group = 0;
}

void bxr_remote_forget(bxr_pool *p)
{
  uint64_t *words = bxr_pending_words(p);
  for (uint64_t g = bxr_exchange_acq_rel(&p->pending_groups, (uint64_t)0); g != 0; g &= g - 1)
    (void)bxr_exchange_acq_rel(&words[__builtin_ctzll(g)], (uint64_t)0);
}

/* --- folding ----------------------------------------------------------------------------------------------------------- */

static void append(bxr_queue *q, bxr_pool *p)
{
  p->pending_next = NULL;
  if (q->first == NULL) q->first = p;
  else q->last->pending_next = p;
  q->last = p;
}

static bxr_pool *take_first(bxr_queue *q)
{
  bxr_pool *p = q->first;
  if (p != NULL) q->first = p->pending_next;
  return p;
}

/* Those that waited for the marker need not wait any longer. */
static void stop_waiting(bxr_domain *d)
{
  bxr_pool *p = d->to_wait.first;
  if (p == NULL || bxr_needs_barrier(d, p)) return; /* they waited for the same marker; what follows is asked again in turn */
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
static void freed_some(bxr_domain *d, bxr_pool *p)
{
  if (bxr_pool_is_empty(p) && p != d->current && p != d->spare && !bxr_awaits_marker(d, p)) bxr_domain_release_pool(d, p);
  else bxr_domain_freed(d, p);
}

/* The marker must not have to read p. When all roots are gone no slot need be touched. */
static int64_t fold_pool(bxr_domain *d, bxr_pool *p)
{
  enum { POOL_COST = 64 };
  uint64_t *words = bxr_pending_words(p), groups = bxr_exchange_acq_rel(&p->pending_groups, (uint64_t)0);
  uint64_t bits[BXR_PENDING_WORDS];
  uint32_t n = 0;
  for (uint64_t m = groups; m != 0; m &= m - 1) {
    unsigned g = (unsigned)__builtin_ctzll(m);
    bits[g] = bxr_exchange_acq_rel(&words[g], (uint64_t)0);
    n += (uint32_t)__builtin_popcountll(bits[g]);
  }
  bool whole = p->exact && p->head.freed + n == BXR_CAPACITY && p != d->current && !bxr_awaits_marker(d, p);
  if (whole) bxr_pool_renew(p);
  else
    for (uint64_t m = groups; m != 0; m &= m - 1) fold_word(p, (unsigned)__builtin_ctzll(m), bits[__builtin_ctzll(m)]);
  bxr_count(&d->count.delete_remote, n);
  freed_some(d, p);
  return POOL_COST + (whole ? 0 : (int64_t)n);
}

int64_t bxr_remote_fold(bxr_domain *d, int64_t budget)
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
    if (BXR_UNLIKELY(!bxr_at_home(d, p))) announce(p);
    else if (bxr_needs_barrier(d, p)) append(&d->to_wait, p);
    else budget -= fold_pool(d, p);
  }
  return budget;
}

bool bxr_remote_fold_waiting(bxr_domain *d)
{
  bxr_pool *p = take_first(&d->to_wait);
  if (p == NULL) return false;
  if (bxr_belongs_to_past(d, p)) {
    append(&d->to_wait, p);
    return false;
  }
  if (bxr_needs_barrier(d, p)) bxr_chain_darken(d, p);
  (void)fold_pool(d, p);
  return true;
}
