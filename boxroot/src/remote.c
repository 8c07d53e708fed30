/* SPDX-License-Identifier: MIT */
#include "remote.h"
#include "fault.h"

static void push_pending(bxr_domain *home, bxr_pool *p)
{
  bxr_pool *head = bxr_load_relaxed(&home->pending);
  do p->pending_next = head;
  while (!bxr_cas_seq_cst(&home->pending, &head, p));
}

/* The home may change meanwhile: it is stored before the new home's or the orphans' owner
   looks through the old list (bxr_remote_forward), and read again here after the addition to it. One of the two sees
   the other. */
void bxr_remote_announce(bxr_pool *p)
{
  bxr_domain *home = bxr_load_seq_cst(&p->home);
  if (home == NULL) return; /* a root from before a teardown */
  push_pending(home, p);
  if (BXR_UNLIKELY(bxr_load_seq_cst(&p->home) != home)) bxr_remote_forward(home);
}

static void announce_all(bxr_pool *p)
{
  while (p != NULL) {
    bxr_pool *next = p->pending_next;
    bxr_remote_announce(p);
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

/* The bits are known to be clear, so adding sets them; processors have an instruction for that, and a loop for the
   other way. */
static void set_bits(bxr_pool *p, uint64_t *word, uint64_t bits)
{
  uint64_t before = bxr_fetch_add_acq_rel(word, bits);
  BXR_ASSERT((before & bits) == 0);
  if (BXR_LIKELY(before != 0)) return;
  uint64_t group = (uint64_t)1 << (word - bxr_region_pending_words(p));
  if (bxr_fetch_add_acq_rel(&p->pending_groups, group) != 0) return;
  bxr_remote_announce(p);
}

void bxr_remote_delete(boxroot r)
{
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  size_t i = index_of(r);
  set_bits(p, &bxr_region_pending_words(p)[i / 64], (uint64_t)1 << (i % 64));
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
  set_bits(p, &bxr_region_pending_words(p)[index_of(r) / 64], me->out_bits);
  me->out_group = 0;
}

void bxr_remote_forget(bxr_pool *p)
{
  uint64_t *words = bxr_region_pending_words(p);
  for (uint64_t g = bxr_exchange_acq_rel(&p->pending_groups, (uint64_t)0); g != 0; g &= g - 1)
    (void)bxr_exchange_acq_rel(&words[__builtin_ctzll(g)], (uint64_t)0);
}
