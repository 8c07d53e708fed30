/* SPDX-License-Identifier: MIT */
#include "delete.h"
#include "checked/account.h"
#include "status.h"

static size_t index_of(boxroot r) { return ((uintptr_t)r & (BXR_POOL_SIZE - 1)) / sizeof(uintptr_t); }

/* The address of the first of the 64 slots that have a word of the bitmap with r. */
static uintptr_t group_of(boxroot r) { return (uintptr_t)r & ~(uintptr_t)(64 * sizeof(uintptr_t) - 1); }

/* --- recording ---------------------------------------------------------------------------------------------------- */

static void push_pending(bxr_domain *home, bxr_pool *p)
{
  bxr_pool *head = bxr_load_relaxed(&home->pending);
  do p->pending_next = head;
  while (!bxr_cas_seq_cst(&home->pending, &head, p));
}

/* The home may change meanwhile: it is stored before the new home's or the
   orphans' owner looks through the old list (bxr_remote_forward), and read again here after the addition to that list.
   One of the two sees the other. */
void bxr_remote_enqueue(bxr_pool *p)
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
    bxr_remote_enqueue(p);
    p = next;
  }
}

void bxr_remote_forward(bxr_domain *d) { enqueue_all(bxr_exchange_seq_cst(&d->pending, (bxr_pool *)NULL)); }

void bxr_remote_forward_all(bxr_domain *d)
{
  BXR_ASSERT_LOCK();
  enqueue_all(d->to_drain);
  enqueue_all(d->waiting.first);
  d->to_drain = NULL;
  d->waiting = (bxr_queue){ NULL, NULL };
  bxr_remote_forward(d);
}

/* The bits are known to be clear, so an addition sets them: processors have one instruction for an addition that
   returns the old value, and need a loop for an "or" that does. */
static void set_bits(bxr_pool *p, size_t word, uint64_t bits)
{
  uint64_t before = bxr_fetch_add_acq_rel(&bxr_segment_pending_words(p)[word], bits);
  BXR_ASSERT((before & bits) == 0);
  if (BXR_LIKELY(before != 0)) return;
  if (bxr_fetch_add_acq_rel(&p->pending_groups, (uint64_t)1 << word) != 0) return;
  bxr_remote_enqueue(p);
}

void bxr_remote_delete(boxroot r)
{
  size_t i = index_of(r);
  set_bits((bxr_pool *)bxr_pool_of(r), i / 64, (uint64_t)1 << (i % 64));
}

/* Records the deletion of r in the batch that `me` is collecting, if r belongs there. */
static inline bool join_batch(bxr_domain *me, boxroot r)
{
  if (group_of(r) != me->batch_group) return false;
  me->batch_bits |= (uint64_t)1 << (index_of(r) % 64);
  return true;
}

/* Records the deletion of r in the batch of `me`, a domain that uses the library. Needs the lock of `me`, and that none
   of its slots is being visited; any root may be deleted this way. */
static void delete_in_batch(bxr_domain *me, boxroot r)
{
  BXR_ASSERT_OWNER(me);
  BXR_ASSERT(!me->scanning);
  if (join_batch(me, r)) return;
  bxr_remote_flush(me);
  bxr_store_release(&me->batch_group, group_of(r));
  me->batch_bits = (uint64_t)1 << (index_of(r) % 64);
}

void bxr_remote_flush(bxr_domain *me)
{
  if (me->batch_group == 0) return;
  BXR_ASSERT_OWNER(me);
  boxroot r = (boxroot)me->batch_group;
  set_bits((bxr_pool *)bxr_pool_of(r), index_of(r) / 64, me->batch_bits);
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

/* --- which way a deletion goes ------------------------------------------------------------------------------------ */

static void delete_remotely(boxroot r, void *self)
{
  if (self != NULL && !BOXROOT_FORCE_REMOTE) {
    bxr_domain *me = &bxr_domains[bxr_runtime_domain()];
    if (!bxr_domain_is(me, self) && !bxr_runtime_is_terminating()) me = bxr_domain_here();
    if (bxr_domain_may_touch(me, self)) {
      delete_in_batch(me, r);
      return;
    }
  }
  bxr_remote_delete(r);
}

static __attribute__((noinline)) void delete_slowly(boxroot r)
{
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  bxr_domain *d = bxr_domain_of(p);
  if (BXR_UNLIKELY(bxr_load_relaxed(&bxr_status) != BOXROOT_RUNNING)) {
    /* The root was torn down; or, if the pool has a home, another copy of the library in this process made it. */
    if (d != NULL) bxr_remote_delete(r);
    return;
  }
  void *self = bxr_runtime_self();
  if (BOXROOT_FORCE_REMOTE || self == NULL || !bxr_domain_may_touch(d, self)) {
    delete_remotely(r, self);
    return;
  }
  bxr_count(&d->count.delete_slow, 1);
  bxr_barrier b = bxr_domain_barrier(d);
  if (bxr_pool_guarded(p, b)) {
    delete_in_batch(d, r); /* the marker will read the slot */
    return;
  }
  if (bxr_quarantine_put(r, p->wider, bxr_delete_slow)) return;
  if (BXR_UNLIKELY(bxr_domain_has_cleared(d, p))) return; /* it comes out of quarantine */
  bxr_pool_put(p, (uintptr_t *)r);
  bxr_list_after_free(d, p, b);
}

static __attribute__((noinline)) void delete_of_other(boxroot r)
{
  void *self = bxr_runtime_self();
  if (!BOXROOT_FORCE_REMOTE && BXR_LIKELY(self != NULL)) {
    bxr_domain *me = &bxr_domains[bxr_runtime_domain()];
    if (BXR_LIKELY(bxr_domain_is(me, self)) && BXR_LIKELY(join_batch(me, r))) return;
  }
  delete_slowly(r);
}

/* Whether this thread has the lock of d, as the inline paths judge it. Nothing of the runtime is read, so it does not
   matter whether OCaml has shut down. */
static inline bool is_here(bxr_domain *d)
{
  return bxr_domain_is(d, bxr_self()) && BXR_LIKELY(d->strays == BXR_RUNTIME_NO_STRAYS) &&
         BXR_LIKELY(!bxr_runtime_self_may_be_stale());
}

/* The usual case comes first: a root of this domain, whose deletion waits for the marker, beside the last one. */
void bxr_delete_slow(boxroot r)
{
  bxr_domain *d = bxr_domain_of((bxr_pool *)bxr_pool_of(r));
  if (BXR_OCAML5 && !BOXROOT_FORCE_REMOTE && BXR_LIKELY(d != NULL) && BXR_LIKELY(is_here(d)) &&
      BXR_LIKELY(join_batch(d, r)))
    return;
  delete_of_other(r);
}

void bxr_delete(boxroot r)
{
#if !BOXROOT_DEBUG && !BOXROOT_FORCE_REMOTE
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  if (BXR_LIKELY(bxr_load_relaxed(&p->head.free_owner) == bxr_self())) {
    bxr_pool_put(p, (uintptr_t *)r);
    return;
  }
#endif
  bxr_delete_slow(r);
}
