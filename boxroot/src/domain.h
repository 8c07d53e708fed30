/* SPDX-License-Identifier: MIT */
/* The record of a domain: its pools, and where it stands in the major cycle. Records are static, one for each identity
   a domain can have, so they outlive domains and need no allocation; identities are reused, and so are records.

   Everything is owned by the thread that holds the domain's lock, or acts for the domain while the world is stopped;
   exceptions are marked atomic.

   Invariants: head.source is the current pool's head, or that of a pool without slots;
   current is NULL or on list[BXR_PLACE_YOUNG_AVAIL]; spare is NULL or on list[BXR_PLACE_OLD_AVAIL]
   or list[BXR_PLACE_OLD_ROOMY];
   the domain has no pools while state is BXR_NOBODY or NULL; every pool on its lists has home == this record;
   pools_in_use = the pools on the lists of the places other than IDLE; idle = those on list[IDLE];
   idle_least <= idle; surplus <= idle. */
#ifndef BXR_DOMAIN_H
#define BXR_DOMAIN_H

#include "region.h"
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
  bxr_pool *list[BXR_PLACES]; /* pools by place */
  bxr_pool *spare;            /* the pool that was current before the last minor collection */
  uint64_t served;            /* times a pool was made the current one since then, */
  uint64_t served_before;     /* and between that collection and the one before */
  bxr_pool *pending;          /* pools with pending deletions (atomic) */
  bxr_pool *to_fold;          /* of these, those that were taken off that list and whose turn is still to come */
  bxr_queue to_wait;          /* and those that the marker is to read first */
  uintptr_t out_group;        /* deletions that are collected here: the address of the first of 64 slots, or 0, */
  uint64_t out_bits;          /* and the bits of those that are deleted */
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
} __attribute__((aligned(128))) bxr_domain;

BXR_INTERNAL_DATA bxr_domain bxr_domains[BXR_MAX_DOMAINS];

/* The record of the current domain, made ready for use. Needs the domain lock. */
BXR_INTERNAL bxr_domain *bxr_domain_here(void);

static inline bool bxr_domain_is(bxr_domain *d, void *self) { return bxr_load_relaxed(&d->head.state) == self; }

/* Whether p belongs to d. */
static inline bool bxr_domain_owns(bxr_domain *d, bxr_pool *p) { return bxr_load_relaxed(&p->home) == d; }

/* The inline paths of this thread, which has the lock of d, may make roots in the current pool; unless nothing tells
   when the thread ends. */
BXR_INTERNAL void bxr_domain_offer(bxr_domain *d);

/* Sets d->current; p may be NULL. bxr_place_publish(d, p) has to follow. */
BXR_INTERNAL void bxr_domain_set_current(bxr_domain *d, bxr_pool *p);

#endif
