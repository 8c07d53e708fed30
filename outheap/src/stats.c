/* SPDX-License-Identifier: MIT */
#include "stats.h"
#include "atomic.h"
#include "block.h"
#include "check.h"
#include "marking.h"
#include "outheap.h"
#include "ranges.h"
#include "reserve.h"
#include "slab.h"
#include "space.h"

struct oh_marking_counters oh_marking;

void outheap_statistics(struct outheap_statistics *s)
{
  struct oh_reserve_counters reserve;
  struct oh_slab_counters slab;
  struct oh_block_counters block;
  oh_reserve_count(OH_SPACES, &reserve);
  oh_pools_count(&slab);
  oh_blocks_count(&block);
  *s = (struct outheap_statistics){
    .chunks = reserve.chunks, .chunks_tainted = reserve.tainted, .reserved = reserve.reserved, .reserved_ahead = reserve.ahead,
    .resident_free = slab.resident_free + block.resident_free,
    .pools = slab.pools, .pool_pages = slab.pages, .blocks = block.blocks, .block_bytes = block.bytes,
    .ranges = oh_ranges_count(), .reservations = reserve.reservations, .met_unknown = oh_met_unknown(),
    .words_seen = oh_load_relaxed(&oh_marking.seen), .words_immediate = oh_load_relaxed(&oh_marking.immediate),
    .words_young = oh_load_relaxed(&oh_marking.young), .words_static = oh_load_relaxed(&oh_marking.statics),
    .words_foreign = oh_load_relaxed(&oh_marking.foreign), .lines_saved = oh_load_relaxed(&oh_marking.lines),
  };
  for (int i = 0; i < OH_SPACES; i++) {
    struct oh_space_counters c;
    oh_pages_count(i, &c);
    s->committed += c.committed;
    s->resident_free += c.dirty;
    s->commits += c.commits;
    s->decommits += c.decommits;
    s->advises += c.advises;
    if (i == OH_SPACE_YOUNG) s->young = c.committed - c.dirty;
  }
}

void oh_stats_print(void)
{
  struct outheap_statistics s;
  outheap_statistics(&s);
#define P(field) oh_say(#field " %zu", s.field)
  P(chunks), P(chunks_tainted), P(reserved), P(reserved_ahead), P(committed), P(resident_free), P(pools), P(pool_pages), P(blocks), P(block_bytes);
  P(young), P(ranges), P(commits), P(decommits), P(reservations), P(advises), P(met_unknown);
  P(words_seen), P(words_immediate), P(words_young), P(words_static), P(words_foreign), P(lines_saved);
#undef P
}
