/* SPDX-License-Identifier: MIT */
#include "follow.h"
#include "settings.h"
#include <stdlib.h>
#include <string.h>

struct oh_follow_counters oh_follow_counters;
struct oh_follow_heap oh_follow_heap;

static void count(size_t *counter, size_t n) { (void)oh_fetch_add_relaxed(counter, n); }

/* --- pace --------------------------------------------------------------------------------------------------------- */

static uint64_t period = OH_FOLLOW_PERIOD;    /* read by slices, as the next two */
static uint64_t cost;                         /* of the last cycle: nanoseconds in its slices */
static bool urgent = true, was_by_time;       /* have cycles by time freed something? did the last one come by time? */
static uint64_t spent, shares, running;       /* in this cycle: nanoseconds in slices; millionths of a cycle, by time;
                                                 nanoseconds of running time */
static uint64_t saved;                        /* nanoseconds that cycles by time may still cost */
static unsigned useless;                      /* cycles by time in a row that freed next to nothing */

/* saved <= OH_FOLLOW_SAVED + what one cycle adds; it is cut at the end of a cycle. */
static bool is_quick(uint64_t ran)
{
  return oh_load_relaxed(&urgent) && (oh_load_relaxed(&was_by_time) || ran > OH_FOLLOW_STALLED)
         && oh_load_relaxed(&saved) >= oh_load_relaxed(&cost);
}

double oh_follow_due(uint64_t nanoseconds)
{
  uint64_t ran = oh_fetch_add_relaxed(&running, nanoseconds) + nanoseconds;
  (void)oh_fetch_add_relaxed(&saved, nanoseconds / OH_FOLLOW_SHARE);
  uint64_t all = is_quick(ran) ? OH_FOLLOW_QUICK : oh_load_relaxed(&period);
  double share = (double)nanoseconds / (double)all;
  (void)oh_fetch_add_relaxed(&shares, (uint64_t)(share * 1e6));
  return share;
}

void oh_follow_slice(uint64_t nanoseconds) { (void)oh_fetch_add_relaxed(&spent, nanoseconds); }

static void end_cycle(struct oh_follow_heap const *h)
{
  bool by_time = oh_load_relaxed(&shares) > 500000, useful = h->swept > (h->live + h->swept) / 20;
  if (by_time) count(&oh_follow_counters.cycles, 1);
  if (useful) useless = 0;
  else if (by_time && useless < 8) useless++;
  uint64_t next = OH_FOLLOW_PERIOD << useless, took = oh_load_relaxed(&spent), left = oh_load_relaxed(&saved);
  if (by_time) left -= left < took ? left : took;
  if (next > OH_FOLLOW_PERIOD_MOST) next = OH_FOLLOW_PERIOD_MOST;
  oh_store_relaxed(&period, next > took * OH_FOLLOW_SHARE ? next : took * OH_FOLLOW_SHARE);
  oh_store_relaxed(&saved, left < OH_FOLLOW_SAVED ? left : OH_FOLLOW_SAVED);
  oh_store_relaxed(&cost, took);
  oh_store_relaxed(&urgent, useless == 0);
  oh_store_relaxed(&was_by_time, by_time);
  oh_store_relaxed(&spent, (uint64_t)0);
  oh_store_relaxed(&shares, (uint64_t)0);
  oh_store_relaxed(&running, (uint64_t)0);
}

/* --- compaction --------------------------------------------------------------------------------------------------- */

/* What a compaction costs at first, in nanoseconds for each KiB of live data, and of pools with room. */
#define LIVE_COST 170
#define PARTIAL_COST 150
#define RETAKEN_CYCLES 2 /* memory that is taken again within so many was given back too soon */
#define PATIENCE_MOST ((uint64_t)300000000000)

static double scale = 1;         /* what compactions have cost, to what they were predicted to */
static uint64_t predicted;       /* nanoseconds, of the one that is to come */
static uint64_t last, patience;  /* when the last one ended; how long not to begin another */
static size_t gained, left;      /* bytes: what the last one was to free, and what it left */
static unsigned cycles;          /* since then */
static size_t overhead;          /* Gc.max_overhead + 1; 0: nobody has set it */

static void look_back(size_t used)
{
  if (gained == 0 || ++cycles > RETAKEN_CYCLES) return;
  if (used > left + gained / 2) {
    patience = patience == 0 ? 2000000000 : patience * 2 > PATIENCE_MOST ? PATIENCE_MOST : patience * 2;
    gained = 0;
  }
  else if (cycles == RETAKEN_CYCLES) {
    patience /= 2;
    gained = 0;
  }
}

static double choose(struct oh_follow_heap const *h, uint64_t now, bool idle)
{
  size_t percent = oh_load_relaxed(&overhead), all = h->live + h->free;
  predicted = 0;
  if (oh_settings.compact || percent == 1) return 1;
  if (percent > OH_FOLLOW_OVERHEAD_NEVER) return 0;
  if (h->pressed) return 1;
  if (!oh_settings.follow) return 0;
  if (percent != 0 && h->free / 100 < h->live / 100 * ((percent - 1) / 100.0)) return 0;
  if (h->free < OH_FOLLOW_LEAST || h->free < all / 4 || h->partial == 0) return 0;
  double limit = (double)(idle ? oh_settings.idle_pause : oh_settings.compact_pause);
  double live = (double)(h->live >> 10) * LIVE_COST * scale;
  double partial = (double)(h->partial >> 10) * PARTIAL_COST * scale;
  double part = partial + live <= limit ? 1 : (limit - live) / partial;
  bool little = part < 0.02 || (double)h->free * part < (double)OH_FOLLOW_LEAST / 2;
  if (!little) predicted = (uint64_t)(live + partial * part);
  if (little || (last != 0 && now - last < predicted * OH_FOLLOW_SHARE + patience))
    return count(&oh_follow_counters.refused, 1), 0;
  gained = (size_t)((double)h->free * part);
  left = all - gained;
  cycles = 0;
  return part;
}

double oh_follow_cycle(struct oh_follow_heap const *h, uint64_t now, bool idle)
{
  end_cycle(h);
  look_back(h->live + h->free);
  oh_store_relaxed(&oh_follow_heap.live, h->live);
  oh_store_relaxed(&oh_follow_heap.free, h->free);
  oh_store_relaxed(&oh_follow_heap.partial, h->partial);
  oh_store_relaxed(&oh_follow_heap.swept, h->swept);
  return choose(h, now, idle);
}

void oh_follow_compacted(uint64_t now, uint64_t nanoseconds)
{
  size_t took = (size_t)(nanoseconds / 1000);
  count(&oh_follow_counters.compactions, 1);
  if (took > oh_load_relaxed(&oh_follow_counters.longest)) oh_store_relaxed(&oh_follow_counters.longest, took);
  if (predicted != 0) {
    double ratio = (double)nanoseconds / (double)predicted, next = scale * (0.5 + ratio / 2);
    scale = next < 0.25 ? 0.25 : next > 16 ? 16 : next;
  }
  last = now;
}

void oh_follow_idle(void) { count(&oh_follow_counters.idle, 1); }

/* --- Gc.max_overhead ---------------------------------------------------------------------------------------------- */

size_t oh_follow_overhead(void)
{
  size_t percent = oh_load_relaxed(&overhead);
  return percent == 0 ? OH_FOLLOW_OVERHEAD : percent - 1;
}

/* A program that sets another parameter gives back what it got. */
void oh_follow_set_overhead(size_t percent)
{
  if (percent != oh_follow_overhead()) oh_store_relaxed(&overhead, percent + 1);
}

void oh_follow_read(char const *text)
{
  for (; text != NULL && *text != 0; text += strcspn(text, ","), text += *text == ',') {
    if (text[0] != 'O' || text[1] != '=') continue;
    char *end;
    unsigned long long n = strtoull(text + 2, &end, 10);
    if (end != text + 2) oh_store_relaxed(&overhead, (size_t)n + 1);
  }
}
