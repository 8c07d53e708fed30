/* SPDX-License-Identifier: MIT */
/* Which calls created the roots that are live: of one creation in so many, drawn at random, the calls are recorded.

   While creations are sampled all of them take the slow path (bxr_domain_all_slow), which draws, and tags the slot:
   with the number of its calls, or with none. So the tag of a live slot is right without deletions being noticed, and
   every creation has the same chance, whatever else the program does (docs/decisions/0072-who-holds.md).

   A domain begins to take the slow path when it next leaves the inline path or collects. Before it tags slots of a pool
   it closes that pool to the inline paths, so that none of its slots is used again without a new tag.

   Invariant: a slot with a tag is in a pool that is closed to inline creation, or was created before sampling ended. */
#ifndef BXR_SAMPLE_H
#define BXR_SAMPLE_H

#include "census.h"

/* Samples one creation in n from now on; earlier samples are dropped. 0: none, creations are inline again from the next
   minor collection on. False: the C library does not tell calls (backtrace), or there is no memory. */
BXR_INTERNAL bool bxr_sample_start(uint32_t n);

/* One creation in how many is sampled. */
BXR_INTERNAL uint32_t bxr_sample_interval(void);

/* To be called for a new root of d, or of a domain that has ended, while bxr_domain_all_slow. */
BXR_INTERNAL void bxr_sample_note(bxr_domain *d, uintptr_t *slot);

/* A modification moved a root. */
BXR_INTERNAL void bxr_sample_move(boxroot from, boxroot to);

/* For a report: bxr_sample_begin, then bxr_sample_add for each pool with its live slots, then bxr_sample_each calls f
   for those calls, innermost first and NULL after the last, by which some of the roots were created. `id` stays
   theirs. One thread at a time. */
enum { BXR_SAMPLE_CALLS = 20 };
BXR_INTERNAL void bxr_sample_begin(void);
BXR_INTERNAL void bxr_sample_add(bxr_census const *c);
BXR_INTERNAL void bxr_sample_each(void (*f)(void *data, unsigned id, uint64_t roots), void *data);
BXR_INTERNAL void *const *bxr_sample_calls(unsigned id);

/* The library is being unloaded: frees what is known of calls. */
BXR_INTERNAL void bxr_sample_release(void);

#endif
