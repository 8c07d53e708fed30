/* SPDX-License-Identifier: MIT */
#include "stats.h"
#include "address_space.h"
#include "block.h"
#include "helper.h"
#include "limit.h"
#include "mark_counters.h"
#include "minor.h"
#include "pace.h"
#include "pointer.h"
#include "pool.h"
#include "ranges.h"
#include "settings.h"
#include "space.h"
#include "usage.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    .met_unknown = oh_pointer_unknown_found(),
    .minor_grown = oh_load_relaxed(&oh_minor_counters.grown),
    .minor_shrunk = oh_load_relaxed(&oh_minor_counters.shrunk),
    .minor_refused = oh_load_relaxed(&oh_minor_counters.refused),
#define MARKING(name) .name = oh_load_relaxed(&oh_mark_counters.name)
    MARKING(words_seen),
    MARKING(words_immediate),
    MARKING(words_young),
    MARKING(words_static),
    MARKING(words_foreign),
    MARKING(lines_saved),
#undef MARKING
    .refused_zone = oh_notice_count(OH_NOTICE_ZONE),
    .refused_memory = oh_notice_count(OH_NOTICE_MEMORY),
    .refused_huge = oh_notice_count(OH_NOTICE_HUGE) + oh_notice_count(OH_NOTICE_HUGETLB),
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

static size_t add(char *text, size_t used, size_t room, char const *format, ...)
{
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text + used, room - used, format, args);
  va_end(args);
  return n < 0 ? used : (size_t)n < room - used ? used + (size_t)n : room - 1;
}

/* Where they are lost, that is said once. Nothing is said of a descriptor that the program has closed: the standard
   error output may be the program's own file by then. */
static void put(int descriptor, char const *text, size_t length)
{
  static bool said;
  int why = oh_log_write(descriptor, text, length);
  if (why == 0 || why == EBADF || __atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) return;
  oh_log("OUTHEAP: statistics are lost: %s", strerror(why));
}

static size_t add_usage(char *text, size_t used, size_t room)
{
#define NAME(name, kind, thp) [OH_SPACE_##name] = #name,
  static char const *const names[OH_SPACES + 1] = { OH_SPACES_LIST(NAME)[OH_SPACES] = "REST" };
#undef NAME
  struct oh_usage usage[OH_SPACES + 1];
  if (!oh_usage_get(usage)) return used;
  for (int i = 0; i <= OH_SPACES; i++) {
    char name[16];
    size_t n = 0;
    for (; names[i][n] != 0; n++) name[n] = (char)(names[i][n] | 32); /* small letters */
    name[n] = 0;
    used = add(text, used, room, "outheap: resident.%s %zu\n", name, usage[i].resident);
    used = add(text, used, room, "outheap: huge.%s %zu\n", name, usage[i].huge);
  }
  return used;
}

void oh_stats_print(int descriptor, char const *title)
{
  char text[6000]; /* written at once, so that it stays together */
  size_t used = 0;
  struct outheap_statistics s;
  oh_stats_get(&s);
  if (title != NULL) used = add(text, used, sizeof text, "outheap: %s\n", title);
#define PRINT(name, meaning) used = add(text, used, sizeof text, "outheap: " #name " %zu\n", s.name);
  OUTHEAP_STATISTICS(PRINT)
#undef PRINT
  if (oh_settings.helper != OH_SETTINGS_HELPER_OFF) {
#define HELPER(name) \
  used = add(text, used, sizeof text, "outheap: helper." #name " %zu\n", oh_load_relaxed(&oh_helper_counters.name))
    HELPER(cycles);
    HELPER(words);
    HELPER(blocks);
    HELPER(pools);
    HELPER(swept);
    HELPER(given);
    HELPER(deferred);
    HELPER(frugal);
    HELPER(backed_off);
    HELPER(overflowed);
    HELPER(paused);
    HELPER(spans);
    HELPER(microseconds);
#undef HELPER
  }
  if (oh_settings.reclaim) {
#define MEMORY(name) \
  used = add(text, used, sizeof text, "outheap: memory." #name " %zu\n", oh_load_relaxed(&oh_pace_counters.name))
    MEMORY(cycles);
    MEMORY(compactions);
    MEMORY(refused);
    MEMORY(longest);
    MEMORY(idle);
    MEMORY(asked);
    MEMORY(purged);
#undef MEMORY
    used = add(text, used, sizeof text, "outheap: memory.live %zu\n", oh_load_relaxed(&oh_pace_heap.live));
  }
  if (oh_limit_bytes != 0) {
#define LIMIT(name) \
  used = add(text, used, sizeof text, "outheap: limit." #name " %zu\n", oh_load_relaxed(&oh_limit_counters.name))
    LIMIT(hurried);
    LIMIT(held);
    LIMIT(compacted);
    LIMIT(exceeded);
#undef LIMIT
  }
  used = add_usage(text, used, sizeof text);
  put(descriptor, text, used);
}

static size_t since(size_t const *counter, size_t *last)
{
  size_t now = oh_load_relaxed(counter), before = oh_load_relaxed(last);
  oh_store_relaxed(last, now);
  return now - before;
}

void oh_stats_slice(int descriptor)
{
  static struct oh_mark_counters last;
  size_t seen = since(&oh_mark_counters.words_seen, &last.words_seen),
         values = since(&oh_mark_counters.words_static, &last.words_static),
         foreign = since(&oh_mark_counters.words_foreign, &last.words_foreign),
         lines = since(&oh_mark_counters.lines_saved, &last.lines_saved);
  char text[128];
  if (seen == 0) return;
  put(descriptor, text, add(text, 0, sizeof text, "outheap: slice %zu %zu %zu %zu\n", seen, values, foreign, lines));
}
