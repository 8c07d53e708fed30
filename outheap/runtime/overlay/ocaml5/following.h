/* SPDX-License-Identifier: MIT */
/* Memory that follows the data: what the units of the runtime share of it. The policy is in core/follow.h, the thread
   in core/keeper.h. */
#ifndef OH_FOLLOWING_H
#define OH_FOLLOWING_H

#include "prelude.h"
#include "follow.h"
#include "limit.h"
#include <stdbool.h>

/* The part of the pools with room that is compacted at the end of this cycle; 0: none. Written while one domain acts
   for all that are stopped, and read by all before they go on. */
extern double oh_following_part;

/* Is the heap compacted at the end of this cycle? `forced`: the program has asked for it; then all of it is. All
   domains that are stopped ask, and say the same. */
extern bool oh_following_is_forced;
static inline bool oh_following_compacts(bool forced)
{
  oh_store_relaxed(&oh_following_is_forced, forced);
  return forced || oh_following_part > 0;
}

/* Is the keeper at work in the place of a domain? Then no finaliser may run (oh_following_set_away). Relaxed: it
   changes under the domain's lock, and another domain that sees it does no harm. */
extern bool oh_following_is_away;
static inline bool oh_following_away(void) { return oh_load_relaxed(&oh_following_is_away); }

/* Has the keeper asked the backup threads of several domains for slices (idling.h)? Their work is no activity of the
   program. Relaxed. */
extern bool oh_following_asks;

/* In each domain, when the keeper's request arrives (major_gc.c). */
void oh_following_asked(caml_domain_state *);

/* Does the program that is collected as an idle one run now and then? Then pauses are as short as in one that runs.
   Relaxed. */
extern bool oh_following_ticks;

/* `survey` adds up the heaps of all domains, which are stopped. */
void oh_following_start(void (*survey)(struct oh_follow_heap *));

/* Bytes that are free in the pools of a heap (shared_heap.c). */
size_t oh_following_free(struct caml_heap_state *);

/* That domain has it said (core/follow.h). */
static inline void oh_following_say_free(caml_domain_state *d, struct caml_heap_state *heap)
{
  oh_follow_set_free((unsigned)d->id, oh_following_free(heap));
}

/* A slice begins: what is due by time, or by the limit, is added to its work; and ends. In the domain. */
void oh_following_slice_begin(caml_domain_state *);
void oh_following_slice_end(caml_domain_state *);

/* So many bytes are about to be allocated at once, where a collection may run: if that is much for the limit, garbage
   is collected first. No function of OCaml's is called. */
void oh_following_collect_for(size_t bytes);
static inline void oh_following_make_room(size_t bytes)
{
  if (oh_limit_is_large(bytes)) oh_following_collect_for(bytes);
}

/* A slice has ended that came by itself: whole cycles may come. */
void oh_following_sliced(void);

/* A cycle has ended, all domains are stopped. `swept`: words that it has freed. */
void oh_following_turn(uintnat swept);

/* The heap has been compacted, and all domains are stopped still. One of them says it. */
void oh_following_moved(void);

/* A slice of the collection of an idle program, by the keeper in the place of its only domain: begins; ends. */
void oh_following_set_away(bool away);

/* What one slice of that does, in the domain's place (major_gc.c): some milliseconds, never a finaliser. */
void oh_following_idle_slice(void);

#endif
