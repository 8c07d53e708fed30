/* SPDX-License-Identifier: MIT */
/* The record of a domain: its pools, and where it stands in the major cycle; the lists that its pools are on; and which
   of them need a deletion barrier.

   Records are static, one for each identity that a domain can have, so they outlive domains and need no allocation.
   Identities are reused, and so are records. Everything in a record is owned by the thread that holds the domain's
   lock, or acts for the domain while the world is stopped; exceptions are marked atomic.

   Invariants:
     head.source (atomic) is the current pool's head, or that of a pool without slots;
     current is NULL or on lists[BXR_LIST_YOUNG_AVAIL];
     spare is NULL or on lists[BXR_LIST_OLD_AVAIL] or lists[BXR_LIST_OLD_ROOMY];
     the domain has no pools while state is BXR_NOBODY or NULL; every pool on its lists has home == this record;
     pools_in_use = the pools on all lists but BXR_LIST_IDLE; idle = those on lists[BXR_LIST_IDLE];
     idle_least <= idle; surplus <= idle.

   A domain has one record of bxr_domains, and one more for each storage that it has made roots in (records.h), linked
   by `also` from the first. What is said of a domain's record is true of each; batches of deletions, orphans and idle
   pools for other domains are the first one's. */
#ifndef BXR_DOMAIN_H
#define BXR_DOMAIN_H

#include "pool.h"
#include "runtime.h"

/* Those of boxroot_statistics that each domain keeps. */
typedef struct bxr_counters {
#define COUNTER(name, meaning) uint64_t name;
  BOXROOT_COUNTERS(COUNTER)
#undef COUNTER
} bxr_counters;

/* Pools with pending deletions, linked by pending_next. */
typedef struct bxr_queue {
  bxr_pool *first, *last;
} bxr_queue;

typedef struct bxr_domain {
  bxr_domain_head head;       /* state: == bxr_self() of the domain, BXR_NOBODY while there is none (atomic) */
  bxr_pool *current;          /* the pool that new roots come from, or NULL */
  bxr_pool *lists[BXR_LISTS]; /* its pools */
  bxr_pool *spare;            /* the pool that was current before the last minor collection */
  uint64_t refills;           /* times a pool was made the current one since then, */
  uint64_t refills_before;    /* and between that collection and the one before */
  bxr_pool *pending;          /* pools with pending deletions (atomic) */
  bxr_pool *to_drain;         /* of these, those that were taken off that list and whose turn is still to come */
  bxr_queue waiting;          /* and those that the marker is to read first */
  uintptr_t batch_group;      /* deletions are collected here: the address of the first of 64 slots, or 0 (atomic), */
  uint64_t batch_bits;        /* and the bits of those that are deleted */
  bxr_pool *chain_end;        /* the last pool of the chain that the marker has, or NULL */
  uint64_t pushed;            /* entries put on the mark stack since it was last emptied, about */
  uint64_t chain_pools;       /* pools that were in the chain when the cycle began */
  uint32_t cycle;             /* number of the major cycle, from 1 */
  uintptr_t runtime_cycle;    /* bxr_runtime_cycle() at the last minor scan, or when marking began if that was later */
  bool marking;               /* the marker may not have read all of the snapshot yet */
  bool scanning;              /* slots are being visited */
  bxr_runtime_strays strays;  /* for whom the inline paths must be closed */
  uint64_t idle;              /* pools that have memory and are not in use */
  uint64_t idle_least;        /* the least of `idle` since the start of the cycle: so many were not needed */
  uint64_t surplus;           /* of these, how many are still to be purged */
  bxr_counters count;
  struct bxr_storage *storage; /* whose roots the record has; NULL: those in no storage */
  uint64_t name;               /* of the storage when the record last looked; 0: none */
  uint8_t wider;               /* of its pools */
  uint32_t until_sample;       /* creations until one is sampled; 0: to be drawn (sample.h) */
  struct bxr_domain *also;     /* the domain's next record */
  struct bxr_domain *before;   /* and the one that this is the next of */
  uint64_t storages;           /* records after the first, whose words these are: how many there are, */
  uint64_t died;               /* and about how many have a storage that others let die meanwhile (atomic) */
  struct bxr_domain *next;     /* of all records that storages ever had, or of those that are not in use */
} __attribute__((aligned(128))) bxr_domain;

BXR_INTERNAL_DATA bxr_domain bxr_domains[BXR_MAX_DOMAINS];
BXR_INTERNAL_DATA unsigned bxr_domains_end; /* those from here on have never been in use (atomic) */

/* All creations take the slow path: while one is in the inline paths are closed to them (sample.h) (atomic). */
BXR_INTERNAL_DATA bool bxr_domain_all_slow;

/* The record of the current domain, made ready for use. Needs the domain lock. */
BXR_INTERNAL bxr_domain *bxr_domain_here(void);

/* Makes a record of the current domain ready for use, if it is not. */
BXR_INTERNAL void bxr_domain_prepare(bxr_domain *d);

static inline bool bxr_domain_is(bxr_domain *d, void *self) { return bxr_load_relaxed(&d->head.state) == self; }

/* What "needs the lock of d" says: this thread holds it, or acts for the domain of d while the world is stopped. And
   "needs the domain lock": this thread holds some. */
#if BXR_OCAML5
#define BXR_ASSERT_OWNER(d) BXR_ASSERT(bxr_domain_is((d), bxr_self()))
#define BXR_ASSERT_LOCK() BXR_ASSERT(bxr_self() != NULL)
#else /* another thread may revoke the token at any time, and then waits for this one (runtime/ocaml4_token.h) */
#define BXR_ASSERT_OWNER(d) BXR_ASSERT((uintptr_t)bxr_load_relaxed(&(d)->head.state) > (uintptr_t)BXR_NOBODY)
#define BXR_ASSERT_LOCK() ((void)0)
#endif

/* The record that p belongs to, or NULL. */
static inline bxr_domain *bxr_domain_of(bxr_pool *p) { return bxr_load_relaxed(&p->home); }
static inline bool bxr_domain_owns(bxr_domain *d, bxr_pool *p) { return bxr_load_relaxed(&p->home) == d; }

/* Whether the roots of p, a pool of d, were dropped with their storage. */
static inline bool bxr_domain_has_cleared(bxr_domain *d, bxr_pool *p) { return p->storage != d->name; }

/* Whether the current domain, which is `self`, may touch the slots of a pool of d itself; d may be NULL. */
BXR_INTERNAL bool bxr_domain_may_touch(bxr_domain *d, void *self);

/* Lets the inline paths of this thread, which has the lock of d, make roots in the current pool; unless nothing tells
   when the thread ends. */
BXR_INTERNAL void bxr_domain_offer(bxr_domain *d);

/* Sets d->current; p may be NULL. bxr_owners_publish has to follow. */
BXR_INTERNAL void bxr_domain_set_current(bxr_domain *d, bxr_pool *p);

/* Closes the current pool, which there is, to inline creations. Needs the lock of d. */
BXR_INTERNAL void bxr_domain_close(bxr_domain *d);

/* Makes p, which has a free slot, the current pool. There is none. */
BXR_INTERNAL void bxr_domain_use(bxr_domain *d, bxr_pool *p, bxr_barrier b);

/* Makes the current pool, if there is one, a pool like others: no root is made inline until another, or the same one,
   is the current pool. Needs the lock of d. */
BXR_INTERNAL void bxr_domain_retire(bxr_domain *d, bxr_barrier b);

/* --- the deletion barrier ----------------------------------------------------------------------------------------- */

/* The barrier as it stands for d, which holds until the operation that asks is over. Needs the lock of d, or the world
   stopped. */
BXR_INTERNAL bxr_barrier bxr_domain_barrier(bxr_domain *d);

/* The barrier for one slot: darkens its value. */
static inline void bxr_domain_darken(bxr_domain *d, uintptr_t old)
{
  if ((old & 1) == 0) bxr_runtime_darken((value)old);
  bxr_count(&d->count.barrier, 1);
}

/* --- pool lists --------------------------------------------------------------------------------------------------- */

/* Moves p from the list that it is on, if it is on one, to another. */
BXR_INTERNAL void bxr_list_move(bxr_domain *d, bxr_pool *p, int list, bool front);

/* Puts p, an old pool that has free slots, at the end of the list of those that are half empty or of the others. */
BXR_INTERNAL void bxr_list_sort(bxr_domain *d, bxr_pool *p);

/* Looks at some of the others, in turn, and sorts them: deletions do not tell when a pool becomes half empty. Cost: a
   look at each, and at its free slots once per use of the pool. */
BXR_INTERNAL void bxr_list_sort_some(bxr_domain *d, int pools);

/* Slots of p were freed: moves p to a list of pools with room if it is not on one. */
BXR_INTERNAL void bxr_list_after_free(bxr_domain *d, bxr_pool *p, bxr_barrier b);

/* Sets the words that the inline paths compare (free_owner, alloc_owner, store_owner), after p moved to another list or
   its need of a barrier changed. Pools on the full lists, in the snapshot, or being visited send every deletion to the
   slow path. */
BXR_INTERNAL void bxr_owners_publish(bxr_domain *d, bxr_pool *p, bxr_barrier b);

/* --- idle pools --------------------------------------------------------------------------------------------------- */

/* The idle pools of a domain have memory and are not in use.

   bxr_idle_obtain returns a pool without roots that has free slots, on no list: an idle one, or one from the depot.
   NULL and ENOMEM when there is no memory. */
BXR_INTERNAL bxr_pool *bxr_idle_obtain(bxr_domain *d, bxr_barrier b);

/* Takes an empty pool off its list and out of use. */
BXR_INTERNAL void bxr_idle_release(bxr_domain *d, bxr_pool *p, bxr_barrier b);

/* Takes all empty pools that no marker will read out of use, but for the current and the spare one. Cost: a look at
   each pool that has free slots, and at each of these slots once per use of the pool. */
BXR_INTERNAL void bxr_idle_release_empty(bxr_domain *d);

/* Returns n idle pools to the depot, with their memory as far as the depot keeps it; fewer if less than `keep` would be
   left. The result is how many. */
BXR_INTERNAL uint64_t bxr_idle_give(bxr_domain *d, uint64_t n, uint64_t keep);

/* A major cycle starts: counts the idle pools that the last one did not need. */
BXR_INTERNAL void bxr_idle_new_cycle(bxr_domain *d);

/* Purges some of the pools that bxr_idle_new_cycle counted, and returns them to the depot: at most
   BXR_MOST_TRIMMED_AT_ONCE, to keep pauses short; the rest has its turn later. */
#define BXR_MOST_TRIMMED_AT_ONCE 16
BXR_INTERNAL void bxr_idle_trim(bxr_domain *d);

/* Purges everything that holds no root, in the depot too. */
BXR_INTERNAL void bxr_idle_trim_all(bxr_domain *d);

#endif
