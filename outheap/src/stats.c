/* SPDX-License-Identifier: MIT */
#include "stats.h"
#include "block.h"
#include "log.h"
#include "marking.h"
#include "pointer.h"
#include "pool.h"
#include "ranges.h"
#include "reserve.h"
#include "space.h"

void oh_stats_get(struct outheap_statistics *s)
{
  struct oh_reserve_counters reserve;
  struct oh_pool_counters pool;
  struct oh_block_counters block;
  oh_reserve_count(OH_SPACES, &reserve);
  oh_pool_count(&pool);
  oh_block_count(&block);
  *s = (struct outheap_statistics){
    .chunks = reserve.chunks,
    .chunks_tainted = reserve.tainted,
    .reserved = reserve.reserved,
    .reserved_ahead = reserve.ahead,
    .resident_free = pool.resident_free + block.resident_free,
    .pools = pool.pools,
    .pool_pages = pool.pages,
    .blocks = block.blocks,
    .block_bytes = block.bytes,
    .ranges = oh_ranges_count(),
    .reservations = reserve.reservations,
    .met_unknown = oh_pointer_met_unknown(),
#define MARKING(name) .name = oh_load_relaxed(&oh_marking.name)
    MARKING(words_seen),
    MARKING(words_immediate),
    MARKING(words_young),
    MARKING(words_static),
    MARKING(words_foreign),
    MARKING(lines_saved),
#undef MARKING
  };
  for (int i = 0; i < OH_SPACES; i++) {
    struct oh_space_counters c;
    oh_space_count(i, &c);
    s->committed += c.committed;
    s->resident_free += c.dirty;
    s->commits += c.commits;
    s->purges += c.purges;
    s->advises += c.advises;
    if (i == OH_SPACE_YOUNG) s->young = c.committed - c.dirty;
  }
}

void oh_stats_print(void)
{
  struct outheap_statistics s;
  oh_stats_get(&s);
#define PRINT(name, meaning) oh_log(#name " %zu", s.name);
  OUTHEAP_STATISTICS(PRINT)
#undef PRINT
}
