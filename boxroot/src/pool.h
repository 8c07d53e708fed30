/* SPDX-License-Identifier: MIT */
/* Pools: an aligned piece of memory with a header, slots for roots, and a free list among the slots.

   To OCaml 5's marker a pool is an OCaml block: `block_header` announces a block of shown + 1 fields, the first slots
   and, last, in the place of a slot that is not in use yet, a link to another pool of the snapshot. So the pools form a
   chain: a marker that is given the first one reaches all others. Since the link comes last it has read (nearly) all of
   a pool before it opens the next one: its stack stays shallow. `earlier` leads back in the chain, from a pool to the
   one that links to it (chain.h).

   Who may touch what ("owner": the thread that holds the lock of the domain that is the pool's home):
   - slots: a live one belongs to the owner of the root; a free one to the owner. The GC rewrites live slots while the
     world is stopped.
   - pending_groups: any thread, atomically (remote.h).
   - home: the owner stores it, any thread reads it.
   - everything else: the owner; any thread may compare the atomic words of the head.

   Invariants, checked by validate.c in the checked build:
     active <= shown <= capacity while a marker may read the pool (the slots between are odd); active <= capacity;
     the free list has distinct slots below `active`, and capacity = live + length(free list) + (capacity - active);
     exact => length(free list) + (capacity - active) = freed;
     place says which list of the domain the pool is on; PLACE_*_FULL => the free list is empty and active = capacity;
     PLACE_OLD_ROOMY => exact and freed >= BXR_ROOMY;
     owner == state of the domain => the pool has a place, and needs no deletion barrier, and is not being scanned;
     maker == state of the domain => the pool is the domain's current pool;
     young_owner == state of the domain => place is PLACE_YOUNG_*, and the pool needs no barrier and is not being
     scanned; a slot of a pool on an old list holds no pointer into a minor heap. */
#ifndef BXR_POOL_H
#define BXR_POOL_H

#include "atomic.h"
#include "fault.h"

enum {
  BXR_PLACE_IDLE,        /* owned by a domain, holds no root, has memory */
  BXR_PLACE_YOUNG_AVAIL, /* may hold young values; has, or may have, free slots */
  BXR_PLACE_YOUNG_FULL,  /* may hold young values; no free slot */
  BXR_PLACE_OLD_ROOMY,   /* holds no young value; known to be half empty, or more */
  BXR_PLACE_OLD_AVAIL,   /* the same; has, or may have, free slots */
  BXR_PLACE_OLD_FULL,
  BXR_PLACES,
  BXR_PLACE_NONE = BXR_PLACES /* on no list */
};

struct bxr_domain;

typedef struct bxr_pool {
  union {
    bxr_pool_head head;
    struct {
      void *compared[3];             /* head.owner, maker and young_owner */
      struct bxr_domain *home;       /* the record of the domain that it belongs to; NULL: it has no owner (atomic) */
      struct bxr_pool *next, *prev;  /* of the list that `place` names */
      struct bxr_pool *earlier;      /* in the chain: the pool whose last field is a link to this one */
      struct bxr_pool *pending_next; /* of the list of pools with pending deletions */
    };
  };
  uint32_t shown;               /* slots that block_header covers, which the marker reads; the link follows them */
  uint32_t snapshot;            /* the domain's cycle in whose snapshot the pool is; 0: none. `adopted`: the runtime's */
  uint8_t place;
  bool exact;                    /* `freed` counts all free slots */
  bool adopted;                  /* left by a domain that ended in mid-cycle, whose marker may still read it */
  bool darkened;                 /* all values it had in the snapshot are marked: no deletion barrier is needed */
  uint64_t pending_groups;       /* bit g: the g-th word of the bitmap of pending deletions is not zero (atomic) */
  uintptr_t block_header;
  uintptr_t slots[];
} bxr_pool;

#define BXR_POOL_SLOTS ((BXR_POOL_SIZE - sizeof(bxr_pool)) / sizeof(uintptr_t) - 1)
#define BXR_CAPACITY ((uint32_t)(BXR_POOL_SLOTS < BOXROOT_POOL_CAPACITY ? BXR_POOL_SLOTS : BOXROOT_POOL_CAPACITY))
#define BXR_ROOMY ((BXR_CAPACITY + 1) / 2) /* free slots with which an old pool is worth making young */
#define BXR_ACTIVATED_AT_ONCE 128
#define BXR_SHOWN_AHEAD 256 /* slots that can still be put in use while the marker is under way */

_Static_assert(offsetof(bxr_pool, home) == offsetof(bxr_pool_head, others) &&
               offsetof(bxr_pool_head, free) == 64 && sizeof(bxr_pool_head) <= offsetof(bxr_pool, shown),
               "the words that other threads compare have a line of their own");
_Static_assert(offsetof(bxr_pool, slots) == offsetof(bxr_pool, block_header) + sizeof(uintptr_t),
               "the block header precedes field 0");
_Static_assert(BOXROOT_POOL_LOG_SIZE >= 12 && BOXROOT_POOL_LOG_SIZE <= 15, "pool size out of range");
_Static_assert(BOXROOT_POOL_CAPACITY >= 1, "pools must hold a root");

/* Formats zeroed or stale memory as an empty pool that has no owner. Touches the header only. */
BXR_INTERNAL void bxr_pool_format(bxr_pool *p);

/* Puts the next slots that were never used on the (empty) free list. False when there are none below `limit`. */
BXR_INTERNAL bool bxr_pool_activate(bxr_pool *p, uint32_t limit);

/* Resets an empty pool: no slot was ever used. No marker may read it any more. Cost: constant. */
BXR_INTERNAL void bxr_pool_reset(bxr_pool *p);

/* Takes a slot. The pool must have a free one. */
static inline uintptr_t *bxr_pool_take(bxr_pool *p)
{
  BXR_ASSERT(p->head.free != BXR_FREE_END);
  uintptr_t *slot = (uintptr_t *)(p->head.free - 1);
  p->head.free = *slot;
  return slot;
}

static inline void bxr_pool_put(bxr_pool *p, uintptr_t *slot)
{
  *slot = p->head.free;
  p->head.free = (uintptr_t)slot + 1;
  p->head.freed++;
}

/* Makes `freed` exact, by walking the free list if need be. Cost: at most one step per free slot, once per use of a
   pool. */
BXR_INTERNAL void bxr_pool_count(bxr_pool *p);

/* From now on no thread may use the inline paths on p. */
static inline void bxr_pool_close(bxr_pool *p)
{
  bxr_store_relaxed(&p->head.owner, BXR_NOBODY);
  bxr_store_relaxed(&p->head.maker, BXR_NOBODY);
  bxr_store_relaxed(&p->head.young_owner, BXR_NOBODY);
}

static inline bool bxr_pool_is_empty(bxr_pool *p) { return p->exact && p->head.freed == BXR_CAPACITY; }
static inline bool bxr_pool_is_young(bxr_pool *p)
{
  return p->place == BXR_PLACE_YOUNG_AVAIL || p->place == BXR_PLACE_YOUNG_FULL;
}

/* Lists of pools: a ring, named by its first pool; NULL when empty. Constant time. */
BXR_INTERNAL void bxr_pool_list_push_front(bxr_pool **list, bxr_pool *p);
BXR_INTERNAL void bxr_pool_list_push_back(bxr_pool **list, bxr_pool *p);
BXR_INTERNAL void bxr_pool_list_remove(bxr_pool **list, bxr_pool *p);

#endif
