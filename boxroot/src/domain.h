/* SPDX-License-Identifier: MIT */
/* The record of a domain: its pools, its regions, and where it stands in the major cycle. Records are static, one for each identity
   a domain can have, so they outlive domains and need no allocation; identities are reused, and so are records.

   Everything is owned by whoever holds the domain's lock, or acts for the domain while the world is stopped; exceptions are
   marked atomic.

   Invariants: current is NULL or on list[BXR_PLACE_YOUNG_AVAIL]; spare is NULL or on list[BXR_PLACE_OLD_AVAIL];
   the domain has no regions while state is BXR_NOBODY or 0;
   every pool in use of a region on `regions` is on list[its place]; regions have home == this record. */
#ifndef BXR_DOMAIN_H
#define BXR_DOMAIN_H

#include "region.h"
#include "runtime.h"

typedef struct bxr_counters {
  uint64_t pools_in_use, pools_peak, pools_decommitted, roots_last_cycle, create_slow, delete_slow, delete_remote, modify_slow,
    barrier, darkened_pools, minor_scans, minor_slots, major_starts, other_scans, regions_adopted;
} bxr_counters;

typedef struct bxr_domain {
  void *state;                  /* == bxr_self() of the domain, BXR_NOBODY while there is none (atomic) */
  bxr_pool *current;            /* the pool that new roots come from, or NULL */
  bxr_pool *list[BXR_PLACES];   /* pools by place; list[BXR_PLACE_NONE] is not used */
  bxr_pool *spare;              /* the pool that was current before the last minor collection */
  bxr_region *regions;
  bxr_pool *pending;            /* pools with pending deletions (atomic) */
  uint64_t *out_word;           /* deletions of another domain's roots that are collected here: the word of a bitmap, */
  uint64_t out_bits;            /* and the bits to be set in it */
  bxr_pool *out_pool;
  uint32_t cycle;               /* number of the major cycle, from 1 */
  uintptr_t runtime_cycle;      /* bxr_runtime_cycle() at the last minor scan, or when marking began if that was later */
  bool marking;                 /* the marker may not have read all of the snapshot yet */
  bool scanning;                /* slots are being visited */
  uint64_t snapshot_words;      /* words handed to the marker in this cycle */
  uint32_t splits;              /* pools taken out of the chain in this cycle */
  uint64_t idle;                /* pools that have memory and are not in use (those of adopted regions not counted) */
  uint64_t idle_least;          /* the least of `idle` since the start of the cycle: so many were not needed */
  uint64_t surplus;             /* of these, how many are to be given back still */
  bxr_counters count;
} __attribute__((aligned(128))) bxr_domain;

extern bxr_domain bxr_domains[BXR_MAX_DOMAINS];

/* Home of the regions whose domain has ended, until another domain adopts them. */
extern bxr_domain bxr_orphanage;

/* The record of the current domain, made ready for use. Needs the domain lock. */
bxr_domain *bxr_domain_here(void);

/* Whether p is at home at d. */
static inline bool bxr_at_home(bxr_domain *d, bxr_pool *p) { return bxr_load_relaxed(&bxr_region_of(p)->home) == d; }

/* Moves p, which is on the list of its place (or on none), to another. */
void bxr_domain_place(bxr_domain *d, bxr_pool *p, int place, bool front);

/* Sets d->current; p may be NULL. bxr_domain_publish(d, p) has to follow. */
void bxr_domain_set_current(bxr_domain *d, bxr_pool *p);

/* A pool without roots, placed nowhere; NULL and ENOMEM when there is no memory. */
bxr_pool *bxr_domain_obtain_pool(bxr_domain *d);

/* Takes an empty pool off its list and out of use. */
void bxr_domain_release_pool(bxr_domain *d, bxr_pool *p);

/* Gives back the memory of some pools that a whole major cycle did not need (at most BXR_TRIM_AT_ONCE of them, to keep pauses
   short; the rest later). bxr_domain_new_cycle takes stock of them. */
#define BXR_TRIM_AT_ONCE 16
void bxr_domain_trim(bxr_domain *d);
void bxr_domain_new_cycle(bxr_domain *d);

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

/* Whether the old value of a slot of p must be darkened when the slot is overwritten or freed: p belongs to the snapshot of this
   cycle, and the marker may not have read it yet. Idea: deletion barrier of snapshot-at-the-beginning marking. */
static inline bool bxr_needs_barrier(bxr_domain *d, bxr_pool *p) { return !p->darkened && bxr_awaits_marker(d, p); }

/* Does the marker's work on p, so that p needs no barrier. Cost: a look at each value. The marker is spared the pool when it has not
   come to it: it gets the rest of the chain separately. At most BXR_SPLITS times in a cycle, since each time takes a place on its
   stack, which does not grow in every case. */
#define BXR_SPLITS 512
void bxr_domain_darken_pool(bxr_domain *d, bxr_pool *p);

/* The barrier for one slot. After BXR_BARRIERS of them in a pool the rest of it is done at once: it is the cheaper way when more
   deletions follow, and they do as a rule. */
#define BXR_BARRIERS 128
static inline void bxr_barrier(bxr_domain *d, bxr_pool *p, uintptr_t old)
{
  if ((old & 1) == 0) bxr_runtime_darken((value)old);
  bxr_count(&d->count.barrier, 1);
  if (++p->barriers == BXR_BARRIERS) bxr_domain_darken_pool(d, p);
}

/* Sets the words that the inline paths compare, after p's place or duty of a barrier changed. Pools on the full lists, in the
   snapshot, or being visited send every deletion to the slow path. */
void bxr_domain_publish(bxr_domain *d, bxr_pool *p);

/* The domain ends: its regions go to the orphanage. Needs its lock. */
void bxr_domain_orphan(bxr_domain *d);

/* Whether there are regions in the orphanage. */
bool bxr_orphans_exist(void);

/* Takes over all regions in the orphanage. While the world is stopped, on behalf of a domain that stays. */
void bxr_domain_adopt(bxr_domain *d);

/* Gives all memory of roots back, at teardown. The roots are void afterwards. What a marker may still read is left as it is. */
void bxr_domain_dissolve(bxr_domain *d);
void bxr_orphanage_dissolve(void);

/* Hands regions over whose home is the orphanage already; linked by `next` from first to last. */
void bxr_orphan_region(bxr_region *first, bxr_region *last);

#endif
