/* SPDX-License-Identifier: MIT */
/* The record of a domain: its pools, and where it stands in the major cycle. Records are static, one for each identity a domain can have,
   so they outlive domains and need no allocation; identities are reused, and so are records.

   Everything is owned by whoever holds the domain's lock, or acts for the domain while the world is stopped; exceptions are
   marked atomic.

   Invariants: head.source is the current pool's head, or that of a pool without slots;
   current is NULL or on list[BXR_PLACE_YOUNG_AVAIL]; spare is NULL or on list[BXR_PLACE_OLD_AVAIL];
   the domain has no pools while state is BXR_NOBODY or 0; every pool on its lists has home == this record;
   pools_in_use = the pools on the lists of the places other than IDLE; idle = those on list[IDLE];
   idle_least <= idle; surplus <= idle. */
#ifndef BXR_DOMAIN_H
#define BXR_DOMAIN_H

#include "region.h"
#include "runtime.h"

typedef struct bxr_counters {
  uint64_t pools_in_use, pools_peak, pools_decommitted, roots_last_cycle, create_slow, delete_slow, delete_remote, modify_slow,
    barrier, darkened_pools, minor_scans, minor_slots, major_starts, other_scans, pools_adopted;
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
  uint64_t idle;              /* pools that have memory and are not in use */
  uint64_t idle_least;        /* the least of `idle` since the start of the cycle: so many were not needed */
  uint64_t surplus;           /* of these, how many are to be given back still */
  bxr_counters count;
} __attribute__((aligned(128))) bxr_domain;

BXR_INTERNAL_DATA bxr_domain bxr_domains[BXR_MAX_DOMAINS];

/* Home of the pools whose domain has ended, until another domain adopts them. */
BXR_INTERNAL_DATA bxr_domain bxr_orphanage;

/* The record of the current domain, made ready for use. Needs the domain lock. */
BXR_INTERNAL bxr_domain *bxr_domain_here(void);

static inline bool bxr_is_domain_of(bxr_domain *d, void *self) { return bxr_load_relaxed(&d->head.state) == self; }

/* Whether p is at home at d. */
static inline bool bxr_at_home(bxr_domain *d, bxr_pool *p) { return bxr_load_relaxed(&p->home) == d; }

/* Moves p, which is on the list of its place (or on none), to another. */
BXR_INTERNAL void bxr_domain_place(bxr_domain *d, bxr_pool *p, int place, bool front);

/* Sets d->current; p may be NULL. bxr_domain_publish(d, p) has to follow. */
BXR_INTERNAL void bxr_domain_set_current(bxr_domain *d, bxr_pool *p);

/* Slots of p were freed: p moves to a list of pools with room if it is not on one. */
BXR_INTERNAL void bxr_domain_freed(bxr_domain *d, bxr_pool *p);

/* A pool without roots, placed nowhere; NULL and ENOMEM when there is no memory. */
BXR_INTERNAL bxr_pool *bxr_domain_obtain_pool(bxr_domain *d);

/* Takes an empty pool off its list and out of use. */
BXR_INTERNAL void bxr_domain_release_pool(bxr_domain *d, bxr_pool *p);

/* Takes all empty pools that no marker will read out of use, but for the current and the spare one. Cost: a look at each pool that
   has free slots, and at each of these once per use of the pool. */
BXR_INTERNAL void bxr_domain_release_empty(bxr_domain *d);

/* Gives back the memory of some pools that a whole major cycle did not need (at most BXR_TRIM_AT_ONCE of them, to keep pauses
   short; the rest later). bxr_domain_new_cycle takes stock of them. bxr_domain_trim_all gives all back that holds no root. */
#define BXR_TRIM_AT_ONCE 16
BXR_INTERNAL void bxr_domain_trim(bxr_domain *d);
BXR_INTERNAL void bxr_domain_trim_all(bxr_domain *d);
BXR_INTERNAL void bxr_domain_new_cycle(bxr_domain *d);

/* Whether a marker may still come to p: its memory must stay, and its place in the chain. Not between two cycles, when the heap is
   verified or compacted: the old cycle's markers are through, and the next one's have not begun. A minor
   scan leads into that time, and cycle_start out of it. */
static inline bool bxr_awaits_marker(bxr_domain *d, bxr_pool *p)
{
  if (BOXROOT_STW_SCAN) return false; /* all roots are visited at once: markers come to no pool */
  if (p->snapshot != d->cycle || d->runtime_cycle != bxr_runtime_cycle()) return false;
  if (p->adopted) return true;
  if (d->marking && bxr_runtime_marked()) d->marking = false;
  return d->marking;
}

/* Whether the old value of a slot of p must not be lost yet: p belongs to the snapshot of this cycle, and the marker may not have read it.
   Either the slot keeps it (the deletion is deferred), or it is darkened first.
   Idea: deletion barrier of snapshot-at-the-beginning marking. */
static inline bool bxr_needs_barrier(bxr_domain *d, bxr_pool *p) { return !p->darkened && bxr_awaits_marker(d, p); }

/* Whether the marker of a domain that has ended may be reading p at this moment, on another thread. Then no slot of p is written but while
   the world is stopped: deletions wait, modifications go to another slot. So that marker sees no value that was stored since the end
   of its domain, and the order in which stores become visible does not matter. */
static inline bool bxr_belongs_to_past(bxr_domain *d, bxr_pool *p) { return p->adopted && bxr_awaits_marker(d, p); }

/* The barrier for one slot: darkens its value. */
static inline void bxr_barrier(bxr_domain *d, uintptr_t old)
{
  if ((old & 1) == 0) bxr_runtime_darken((value)old);
  bxr_count(&d->count.barrier, 1);
}

/* Sets the words that the inline paths compare, after p's place or duty of a barrier changed. Pools on the full lists, in the
   snapshot, or being visited send every deletion to the slow path. */
BXR_INTERNAL void bxr_domain_publish(bxr_domain *d, bxr_pool *p);

#endif
