/* SPDX-License-Identifier: MIT */
#include "remote.h"
#include "supply.h"

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
  bxr_region *r = bxr_region_of(p);
  bxr_domain *home = bxr_load_seq_cst(&r->home);
  push(home, p);
  if (BXR_UNLIKELY(bxr_load_seq_cst(&r->home) != home)) bxr_remote_forward(home);
}

void bxr_remote_forward(bxr_domain *d)
{
  bxr_pool *p = bxr_exchange_seq_cst(&d->pending, (bxr_pool *)NULL);
  while (p != NULL) {
    bxr_pool *next = p->pending_next;
    announce(p);
    p = next;
  }
}

void bxr_remote_delete(boxroot r)
{
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  size_t i = ((uintptr_t)r & (BXR_POOL_SIZE - 1)) / sizeof(uintptr_t);
  uint64_t bit = (uint64_t)1 << (i % 64), group = (uint64_t)1 << (i / 64);
  uint64_t before = bxr_fetch_or_acq_rel(&bxr_pending_words(p)[i / 64], bit);
  BXR_ASSERT((before & bit) == 0);
  if (before != 0) return;
  if (bxr_fetch_or_acq_rel(&p->pending_groups, group) != 0) return;
  announce(p);
}

static void fold_pool(bxr_domain *d, bxr_pool *p)
{
  uint64_t n = 0;
  uint64_t *words = bxr_pending_words(p);
  for (uint64_t groups = bxr_exchange_acq_rel(&p->pending_groups, (uint64_t)0); groups != 0; groups &= groups - 1) {
    unsigned g = __builtin_ctzll(groups);
    for (uint64_t bits = bxr_exchange_acq_rel(&words[g], (uint64_t)0); bits != 0; bits &= bits - 1) {
      uintptr_t *slot = (uintptr_t *)p + g * 64 + __builtin_ctzll(bits);
      if (bxr_needs_barrier(d, p)) bxr_barrier(d, p, *slot);
      bxr_pool_put(p, slot);
      n++;
    }
  }
  bxr_count(&d->count.delete_remote, n);
  bxr_freed_some(d, p);
}

void bxr_remote_fold(bxr_domain *d)
{
  BXR_ASSERT(!d->scanning);
  while (bxr_load_relaxed(&d->pending) != NULL) {
    bxr_pool *p = bxr_exchange_seq_cst(&d->pending, (bxr_pool *)NULL);
    while (p != NULL) {
      bxr_pool *next = p->pending_next;
      if (BXR_LIKELY(bxr_at_home(d, p))) fold_pool(d, p);
      else announce(p);
      p = next;
    }
  }
}
