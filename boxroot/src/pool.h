/* SPDX-License-Identifier: MIT */
/* Pools, and the segments of memory that they come from.

   A pool is an aligned piece of memory with a header, slots for roots, and a free list among the slots.

   To OCaml 5's marker a pool is an OCaml block: `block_header` announces a block of marker_limit + 1 fields. They are
   the first slots and, after them, in a slot that is not in use yet, a link to another pool of the snapshot. So the
   pools form a chain: a marker that is given the first one reaches all others. Since the link comes last, the marker
   has read (nearly) all of a pool before it opens the next one, and its stack stays shallow. `chain_prev` leads back in
   the chain, from a pool to the one that links to it (snapshot.h).

   Who may touch what ("the owner" of a pool is the thread that holds the lock of the domain that is the pool's home):
   - slots: a live one belongs to the owner of the root, a free one to the owner of the pool. The GC rewrites live slots
     while the world is stopped.
   - pending_groups: any thread, atomically (delete.h).
   - home: the owner stores it, any thread reads it.
   - everything else: the owner; any thread may compare the atomic words of the head.

   Invariants, checked by checked/validate.c in the checked build:
     active <= capacity; and active <= marker_limit <= capacity while a marker may read the pool, and then the slots
     between active and marker_limit are odd;
     the free list has distinct slots below `active`, and capacity = live + length(free list) + (capacity - active);
     roots of a pool have wider + 1 adjacent slots, the first one at a multiple of that from slots[0]: all are live, or
     all on the free list, where they follow each other; active is a multiple of wider + 1; only the first slot is known
     to those who record deletions, and to the account of the checked build;
     freed_is_exact => length(free list) + (capacity - active) = freed;
     `list` says which list of the domain the pool is on; LIST_*_FULL => the free list is empty and active = capacity;
     LIST_OLD_ROOMY => freed_is_exact and freed >= BXR_ROOMY_LEAST_FREE;
     free_owner == state of the domain => the pool is on a list, needs no deletion barrier, and is not being scanned;
     alloc_owner == state of the domain => the pool is the domain's current pool, and in no storage;
     store_owner == state of the domain => the pool is on LIST_YOUNG_*, needs no barrier, and is not being scanned; a
     slot of a pool on an old list holds no pointer into a minor heap. */
#ifndef BXR_POOL_H
#define BXR_POOL_H

#include "base.h"

/* The lists that a domain has its pools on. */
enum {
  BXR_LIST_IDLE,        /* the pool holds no root, and has memory */
  BXR_LIST_YOUNG_AVAIL, /* the pool may hold young values; it has, or may have, free slots */
  BXR_LIST_YOUNG_FULL,  /* the pool may hold young values; it has no free slot */
  BXR_LIST_OLD_ROOMY,   /* the pool holds no young value; it is known to be half empty, or more */
  BXR_LIST_OLD_AVAIL,   /* the pool holds no young value; it has, or may have, free slots */
  BXR_LIST_OLD_FULL,    /* the pool holds no young value; it has no free slot */
  BXR_LISTS_OF_ROOTS,
  BXR_LIST_CLEARED = BXR_LISTS_OF_ROOTS, /* the pool's roots were dropped with their storage (records.h) */
  BXR_LISTS,
  BXR_LIST_NONE = BXR_LISTS /* the pool is on no list */
};
static inline bool bxr_list_is_young(int l) { return l == BXR_LIST_YOUNG_AVAIL || l == BXR_LIST_YOUNG_FULL; }

struct bxr_domain;

typedef struct bxr_pool {
  union {
    bxr_pool_head head;
    struct {
      void *compared[3];             /* head.free_owner, alloc_owner and store_owner */
      struct bxr_domain *home;       /* the record of the domain that it belongs to; NULL: it has no owner (atomic) */
      struct bxr_pool *next, *prev;  /* on the list that `list` names */
      struct bxr_pool *chain_prev;   /* in the chain: the pool whose last field is a link to this one */
      struct bxr_pool *pending_next; /* on the list of pools with pending deletions */
    };
  };
  uint32_t snapshot_cycle;       /* the domain's cycle in whose snapshot the pool is; 0: none. If other_marker: the
                                    low bits of bxr_runtime_cycle() */
  uint16_t marker_limit;         /* the marker reads the slots below it, which block_header covers; then the link */
  uint8_t wider;                 /* slots of a root beside the first one (boxroot/wide.h) */
  uint8_t list : 4;
  bool freed_is_exact : 1;       /* `freed` counts all free slots */
  bool other_marker : 1;         /* the marker of a domain that ended in mid-cycle may still read the pool */
  bool darkened : 1;             /* all values it had in the snapshot are marked: no deletion barrier is needed */
  uint64_t storage;              /* the name of the storage of its roots; 0: none (records.h) (atomic) */
  uint64_t pending_groups;       /* bit g: the g-th word of the bitmap of pending deletions is not zero (atomic) */
  uintptr_t block_header;
  uintptr_t slots[];
} bxr_pool;

#define BXR_POOL_SLOTS ((BXR_POOL_SIZE - sizeof(bxr_pool)) / sizeof(uintptr_t) - 1)
#define BXR_CAPACITY ((uint32_t)(BXR_POOL_SLOTS < BOXROOT_POOL_CAPACITY ? BXR_POOL_SLOTS : BOXROOT_POOL_CAPACITY))
#define BXR_ROOMY_LEAST_FREE ((BXR_CAPACITY + 1) / 2) /* free slots from which an old pool is worth making young */
#define BXR_MOST_ACTIVATED_AT_ONCE 128
#define BXR_ALLOCATABLE_WHILE_MARKING 256 /* never-used slots that can be put in use while the marker is under way */

_Static_assert(offsetof(bxr_pool, home) == offsetof(bxr_pool_head, others) &&
               offsetof(bxr_pool_head, free) == 64 && sizeof(bxr_pool_head) <= offsetof(bxr_pool, marker_limit),
               "the words that other threads compare have a line of their own");
_Static_assert(offsetof(bxr_pool, slots) == offsetof(bxr_pool, block_header) + sizeof(uintptr_t),
               "the block header precedes field 0");
_Static_assert(BOXROOT_POOL_LOG_SIZE >= 12 && BOXROOT_POOL_LOG_SIZE <= 15, "pool size out of range");
_Static_assert(BOXROOT_POOL_CAPACITY >= 1, "pools must hold a root");
_Static_assert(BXR_POOL_SLOTS <= UINT16_MAX, "marker_limit holds a number of slots");

/* Formats zeroed or stale memory as an empty pool that has no owner. Touches the header only. */
BXR_INTERNAL void bxr_pool_format(bxr_pool *p);

/* Resets an empty pool: none of its slots counts as used any more. No marker may read it any more. Cost: constant. */
BXR_INTERNAL void bxr_pool_reset(bxr_pool *p);

/* Takes the slots of a root from the free list, which must have some. The result is the first one. */
BXR_INTERNAL uintptr_t *bxr_pool_take(bxr_pool *p);

/* Puts the slots of a root on the free list; or of several roots, whose first slots are first[i] for each bit i. */
BXR_INTERNAL void bxr_pool_put(bxr_pool *p, uintptr_t *slot);
BXR_INTERNAL void bxr_pool_put_bits(bxr_pool *p, uintptr_t *first, uint64_t bits);

/* Makes `freed` exact, by walking the free list if need be. Cost: at most one step per free slot, once per use of a
   pool. */
BXR_INTERNAL void bxr_pool_count(bxr_pool *p);

/* Closes the pool: from now on no thread may use the inline paths on it. */
BXR_INTERNAL void bxr_pool_close(bxr_pool *p);

static inline bool bxr_pool_is_empty(bxr_pool *p) { return p->freed_is_exact && p->head.freed == BXR_CAPACITY; }

/* --- the deletion barrier ----------------------------------------------------------------------------------------- */

/* What markers may still have to read, as an operation of a domain finds it: no cycle starts or ends before the
   operation is over (bxr_domain_barrier). */
typedef struct bxr_barrier {
  uint32_t cycle[2]; /* the snapshot of the domain's own marker, and of those of ended domains (other_marker) */
} bxr_barrier;
#define BXR_NO_CYCLE UINT32_MAX /* that of a marker which has read all */
#define BXR_NO_BARRIER ((bxr_barrier){ { BXR_NO_CYCLE, BXR_NO_CYCLE } })

/* Whether a marker may still read p: then its memory must stay, and its position in the chain. It may not between two
   cycles, when the heap is verified or compacted: the old cycle's markers have finished, and those of the next have not
   begun. A minor scan begins that time, and the start of the cycle ends it. */
static inline bool bxr_pool_unread(bxr_pool *p, bxr_barrier b) { return p->snapshot_cycle == b.cycle[p->other_marker]; }

/* Whether the old value of a slot of p must not be lost yet: p belongs to the snapshot of this cycle, and the marker
   may not have read it. Either the slot keeps the value (the deletion is deferred), or the value is darkened first.
   Idea: deletion barrier of snapshot-at-the-beginning marking. */
static inline bool bxr_pool_guarded(bxr_pool *p, bxr_barrier b) { return !p->darkened && bxr_pool_unread(p, b); }

/* Whether the marker of a domain that has ended may be reading p at this moment, on another thread. Then slots of p are
   written only while the world is stopped: deletions wait, modifications go to another slot. So that marker sees no
   value that was stored since the end of its domain, and the order in which stores become visible does not matter. */
static inline bool bxr_pool_others(bxr_pool *p, bxr_barrier b) { return p->other_marker && bxr_pool_unread(p, b); }

/* Whether p has a free slot, after putting the next slots that were never used on the free list if that is empty. */
BXR_INTERNAL bool bxr_pool_has_room(bxr_pool *p, bxr_barrier b);

/* --- segments ----------------------------------------------------------------------------------------------------- */

/* A segment is the unit in which address space for pools is obtained from the system. It is 64 pools long and aligned
   on its size. Its first pool's worth of memory holds the segment's header and, for each of the other 63 pools, a
   bitmap of pending deletions; those pages stay untouched, and cost nothing, in programs that never defer a deletion.

   The address space of a segment is not returned while the library is in use, and a pool's header stays where it is: a
   thread that still looks at a pool that changed hands, or whose memory was purged, reads a valid, if outdated, word.

   Invariants: bit 0 of `unused` is clear; a pool of bit 1 in `unused` is empty, has no pending deletion, and has no
   owner; the bitmap of pending deletions of a pool that changes hands while it is empty is zero. */
typedef struct bxr_segment {
  uint64_t unused; /* bit i: pool i is in the depot (atomic) */
  uint64_t dirty;  /* bit i: pool i may have memory. Changed by the owner of the pool (atomic) */
  uint64_t number; /* in the depot's directory */
  uint16_t *tags;  /* one for each word of the segment, or NULL (sample.h) (atomic) */
  uint64_t pad[4];
  uint64_t pending[]; /* for pool i: BXR_PENDING_WORDS words from (i - 1) * BXR_PENDING_WORDS (atomic) */
} bxr_segment;

#define BXR_SEGMENT_SIZE (BXR_POOL_SIZE * 64)
#define BXR_SEGMENT_TAGS (BXR_SEGMENT_SIZE / sizeof(uintptr_t))
#define BXR_PENDING_WORDS (BXR_POOL_SIZE / sizeof(uintptr_t) / 64)
_Static_assert(sizeof(bxr_segment) == 64, "the header is one cache line");
_Static_assert(sizeof(bxr_segment) + 63 * BXR_PENDING_WORDS * 8 <= BXR_POOL_SIZE, "header and bitmaps fit");

#define bxr_segment_of(p) ((bxr_segment *)((uintptr_t)(p) & ~(BXR_SEGMENT_SIZE - 1)))
#define bxr_segment_index(p) ((unsigned)(((uintptr_t)(p) / BXR_POOL_SIZE) & 63))
#define bxr_segment_pool(s, i) ((bxr_pool *)((uintptr_t)(s) + (i) * BXR_POOL_SIZE))
#define bxr_segment_pending_words(p) (&bxr_segment_of(p)->pending[(bxr_segment_index(p) - 1) * BXR_PENDING_WORDS])

#endif
