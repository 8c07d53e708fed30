/* SPDX-License-Identifier: MIT */
#include "remote.h"
#include "account.h"
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
  if (home == NULL) return; /* a void root, from before a teardown */
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
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  size_t i = index_of(r);
  uint64_t *word = &bxr_pending_words(p)[i / 64];
  if (me->out_word != word) {
    bxr_remote_flush(me);
    me->out_word = word;
    me->out_pool = p;
  }
  me->out_bits |= (uint64_t)1 << (i % 64);
}

void bxr_remote_flush(bxr_domain *me)
{
  if (me->out_word != NULL) set_bits(me->out_pool, me->out_word, me->out_bits);
  me->out_word = NULL;
  me->out_bits = 0;
}

/* Puts the slots of one word on the free list. */
static uint32_t fold_word(bxr_pool *p, unsigned word, uint64_t bits)
{
  uintptr_t *first = (uintptr_t *)p + word * 64;
  uintptr_t free = p->head.free;
  uint32_t n = (uint32_t)__builtin_popcountll(bits);
  for (; bits != 0; bits &= bits - 1) {
    uintptr_t *slot = first + __builtin_ctzll(bits);
    *slot = free;
    free = (uintptr_t)slot + 1;
  }
  p->head.free = free;
  p->head.freed += n;
  return n;
}

static void fold_pool(bxr_domain *d, bxr_pool *p)
{
  uint64_t *words = bxr_pending_words(p);
  uint64_t n = 0;
  for (uint64_t groups = bxr_exchange_acq_rel(&p->pending_groups, (uint64_t)0); groups != 0; groups &= groups - 1) {
    unsigned g = __builtin_ctzll(groups);
    uint64_t bits = bxr_exchange_acq_rel(&words[g], (uint64_t)0);
    if (bxr_needs_barrier(d, p))
      for (uint64_t b = bits; b != 0; b &= b - 1) bxr_barrier(d, p, ((uintptr_t *)p)[g * 64 + __builtin_ctzll(b)]);
    uint64_t kept = bxr_quarantine_bits((uintptr_t *)p + g * 64, bits, bxr_remote_delete);
    n += __builtin_popcountll(kept) + fold_word(p, g, bits & ~kept);
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
