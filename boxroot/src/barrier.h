/* SPDX-License-Identifier: MIT */
/* The deletion barrier of OCaml 5's marker: which pools need it, and the barrier itself. */
#ifndef BXR_BARRIER_H
#define BXR_BARRIER_H

#include "domain.h"

/* Whether a marker may still read p: its memory must stay, and its place in the chain. Not between two cycles, when the
   heap is verified or compacted: the old cycle's markers have finished, and those of the next have not begun. A minor
   scan begins that time, and cycle_start ends it. */
static inline bool bxr_barrier_awaits_marker(bxr_domain *d, bxr_pool *p)
{
  if (BOXROOT_STW_SCAN) return false; /* all roots are visited at once: no marker reads pools */
  uintptr_t cycle = bxr_runtime_cycle();
  if (p->adopted) return p->snapshot == (uint32_t)cycle;
  if (p->snapshot != d->cycle || d->runtime_cycle != cycle) return false;
  if (d->marking && bxr_runtime_marking_done()) d->marking = false;
  return d->marking;
}

/* Whether the old value of a slot of p must not be lost yet: p belongs to the snapshot of this cycle, and the marker
   may not have read it. Either the slot keeps it (the deletion is deferred), or it is darkened first.
   Idea: deletion barrier of snapshot-at-the-beginning marking. */
static inline bool bxr_barrier_needed(bxr_domain *d, bxr_pool *p)
{
  return !p->darkened && bxr_barrier_awaits_marker(d, p);
}

/* Whether the marker of a domain that has ended may be reading p at this moment, on another thread. Then slots of p are
   written only while the world is stopped: deletions wait, modifications go to another slot. So that marker sees no
   value that was stored since the end of its domain, and the order in which stores become visible does not matter. */
static inline bool bxr_barrier_other_marker(bxr_domain *d, bxr_pool *p)
{
  return p->adopted && bxr_barrier_awaits_marker(d, p);
}

/* The barrier for one slot: darkens its value. */
static inline void bxr_barrier_darken(bxr_domain *d, uintptr_t old)
{
  if ((old & 1) == 0) bxr_runtime_darken((value)old);
  bxr_count(&d->count.barrier, 1);
}

#endif
