/* SPDX-License-Identifier: MIT */
/* Memory that follows the data: what the units of the runtime share of it. The policy is in core/pace.h, the thread
   in core/reclaim.h. */
#ifndef OH_CYCLE_H
#define OH_CYCLE_H

#include "prelude.h"
#include "pace.h"
#include "limit.h"
#include <stdbool.h>
#include <caml/shared_heap.h>

/* The part of the pools with room that is compacted at the end of this cycle; 0: none. Written while one domain acts
   for all that are stopped, and read by all before they go on. */
extern double oh_cycle_part;

/* Is the heap compacted at the end of this cycle? `forced`: the program has asked for it; then all of it is. All
   domains that are stopped ask, and say the same. */
extern bool oh_cycle_is_forced;
static inline bool oh_cycle_compacts(bool forced)
{
  oh_store_relaxed(&oh_cycle_is_forced, forced);
  return forced || oh_cycle_part > 0;
}

/* Is the reclaim thread at work in the place of a domain? Then no finaliser may run (oh_cycle_set_borrowed). Relaxed:
   it changes under the domain's lock, and another domain that sees it does no harm. */
extern bool oh_cycle_is_borrowed;
static inline bool oh_cycle_borrowed(void) { return oh_load_relaxed(&oh_cycle_is_borrowed); }

/* Has the reclaim thread asked the backup threads of several domains for slices (idle.h)? Their work is no activity of
   the program. Relaxed. */
extern bool oh_cycle_requested;

/* In each domain, when the reclaim thread's request arrives (major_gc.c). */
void oh_cycle_request_slice(caml_domain_state *);

/* Does the program that is collected as an idle one run now and then? Then pauses are as short as in one that runs.
   Relaxed. */
extern bool oh_cycle_wakes;

/* `survey` adds up the heaps of all domains, which are stopped. */
void oh_cycle_start(void (*survey)(struct oh_pace_heap *));

/* Bytes that are free in the pools of a heap. */
static inline size_t oh_cycle_free(struct caml_heap_state *heap)
{
  struct heap_stats s;
  caml_collect_heap_stats_sample(heap, &s);
  intnat free = s.pool_words - s.pool_live_words - s.pool_frag_words;
  return free > 0 ? Bsize_wsize((size_t)free) : 0;
}

/* That domain has it said (core/pace.h). */
static inline void oh_cycle_note_free(caml_domain_state *d, struct caml_heap_state *heap)
{
  oh_pace_set_free((unsigned)d->id, oh_cycle_free(heap));
}

/* A slice begins: what is due by time, or by the limit, is added to its work; and ends. In the domain. */
void oh_cycle_slice_begin(caml_domain_state *);
void oh_cycle_slice_end(caml_domain_state *);

/* So many bytes are about to be allocated at once, where a collection may run: if that is much for the limit, garbage
   is collected first. No function of OCaml's is called. */
void oh_cycle_collect_for(size_t bytes);
static inline void oh_cycle_make_room(size_t bytes)
{
  if (oh_limit_is_large(bytes)) oh_cycle_collect_for(bytes);
}

/* A slice has ended that came by itself: whole cycles may come. */
void oh_cycle_after_slice(void);

/* A cycle has ended, all domains are stopped. `swept`: words that it has freed. */
void oh_cycle_ended(uintnat swept);

/* The heap has been compacted, and all domains are stopped still. One of them says it. */
void oh_cycle_compacted(void);

/* A slice of the collection of an idle program, by the reclaim thread in the place of its only domain: begins; ends. */
void oh_cycle_set_borrowed(bool away);

/* What one slice of that does, in the domain's place (major_gc.c): some milliseconds, never a finaliser. */
void oh_cycle_idle_slice(void);

#endif
