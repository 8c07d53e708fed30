/* SPDX-License-Identifier: MIT */
#include "pace.h"
#include "os.h"
#include "settings.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct oh_pace_counters oh_pace_counters;
struct oh_pace_heap oh_pace_heap;

static void count(size_t *counter, size_t n) { (void)oh_fetch_add_relaxed(counter, n); }

/* --- forks -------------------------------------------------------------------------------------------------------- */

/* The cycles by allocation that are to end before the heap is this process's own: the one that runs may have marked a
   part before the fork. Read by slices. */
#define FORKED_CYCLES 2
static unsigned shared;
static bool lent; /* has this process forked since its last cycle, and children? Atomic */
static long forking, parent; /* who forks; who made this process */

void oh_pace_fork(void) { forking = oh_os_process(); }

void oh_pace_fork_done(void) { oh_store_relaxed(&lent, true); }

void oh_pace_forked(void)
{
  parent = forking;
  oh_store_relaxed(&lent, false);
  oh_store_relaxed(&shared, FORKED_CYCLES);
}

/* With debug.compact cycles are for tests. */
bool oh_pace_shares(void)
{
  return oh_load_relaxed(&shared) != 0 && oh_os_parent() == parent && !oh_settings.compact;
}

bool oh_pace_may_share(void)
{
  if (oh_load_relaxed(&lent) && !oh_os_has_children()) oh_store_relaxed(&lent, false);
  return (oh_load_relaxed(&lent) && !oh_settings.compact) || oh_pace_shares();
}

/* --- pace --------------------------------------------------------------------------------------------------------- */

static uint64_t period = OH_PACE_PERIOD;    /* read by slices, as the next three */
static uint64_t cost;                         /* of the last cycle: nanoseconds in its slices, */
static size_t cost_bytes;                     /* of a heap of so many bytes; 0: there was none that counts */
static bool urgent = true, was_by_time;       /* have cycles by time freed something? did the last one come by time? */
static uint64_t spent, shares, running;       /* in this cycle: nanoseconds in slices; millionths of a cycle, by time;
                                                 nanoseconds of running time */
static uint64_t saved;                        /* nanoseconds that cycles by time may still cost */
static unsigned useless;                      /* cycles by time in a row that freed next to nothing */

#define BYTES_COST 1 /* nanoseconds that a cycle takes for each byte of a heap, roughly */

double oh_pace_share(uint64_t nanoseconds, size_t bytes)
{
  uint64_t all = (uint64_t)bytes * BYTES_COST;
  return nanoseconds < all ? (double)nanoseconds / (double)all : 1;
}

/* Nanoseconds that a cycle of such a heap may take: more than the last one, if the heap has grown. What one of a small
   heap takes is not measured (oh_pace_slice). */
static uint64_t cost_of(size_t bytes)
{
  size_t before = oh_load_relaxed(&cost_bytes);
  uint64_t took = oh_load_relaxed(&cost);
  if (before == 0) return (uint64_t)bytes * BYTES_COST;
  return bytes <= before ? took : (uint64_t)((double)took * ((double)bytes / (double)before));
}

/* saved <= OH_PACE_SAVED + what one cycle adds; it is cut at the end of a cycle. */
static bool is_quick(uint64_t ran, uint64_t costs)
{
  return oh_load_relaxed(&urgent) && (oh_load_relaxed(&was_by_time) || ran > OH_PACE_STALLED)
         && oh_load_relaxed(&saved) >= costs;
}

static double most_at_a_time(uint64_t since, size_t bytes, uint64_t costs)
{
  uint64_t pause = since / OH_PACE_SHARE;
  if (pause < OH_PACE_SLICE) pause = OH_PACE_SLICE;
  if (pause > oh_settings.compact_pause) pause = oh_settings.compact_pause;
  double share = oh_pace_share(pause, bytes);
  return pause < costs && (double)pause / (double)costs < share ? (double)pause / (double)costs : share;
}

double oh_pace_due(uint64_t nanoseconds, size_t bytes, size_t domains)
{
  if (oh_pace_shares()) return 0;
  uint64_t costs = cost_of(bytes), all = oh_load_relaxed(&period);
  uint64_t of_all = nanoseconds / domains, ran = oh_fetch_add_relaxed(&running, of_all) + of_all;
  (void)oh_fetch_add_relaxed(&saved, nanoseconds / OH_PACE_SHARE);
  if (is_quick(ran, costs)) all = OH_PACE_QUICK;
  else if (all < costs * OH_PACE_SHARE) all = costs * OH_PACE_SHARE;
  double share = (double)nanoseconds / (double)all, most = most_at_a_time(nanoseconds, bytes, costs);
  if (share > most) share = most;
  (void)oh_fetch_add_relaxed(&shares, (uint64_t)(share * 1e6) / domains);
  return share;
}

void oh_pace_slice(uint64_t nanoseconds) { (void)oh_fetch_add_relaxed(&spent, nanoseconds); }

static void end_cycle(struct oh_pace_heap const *h)
{
  bool by_time = oh_load_relaxed(&shares) > 500000, useful = h->swept > (h->live + h->swept) / 20;
  if (by_time) count(&oh_pace_counters.cycles, 1);
  if (shared != 0) oh_store_relaxed(&shared, shared - 1);
  oh_store_relaxed(&lent, false);
  if (useful) useless = 0;
  else if (by_time && useless < 8) useless++;
  uint64_t next = OH_PACE_PERIOD << useless, took = oh_load_relaxed(&spent), left = oh_load_relaxed(&saved);
  if (by_time) left -= left < took ? left : took;
  if (next > OH_PACE_PERIOD_MOST) next = OH_PACE_PERIOD_MOST;
  oh_store_relaxed(&period, next);
  oh_store_relaxed(&saved, left < OH_PACE_SAVED ? left : OH_PACE_SAVED);
  oh_store_relaxed(&cost, took);
  oh_store_relaxed(&cost_bytes, h->live + h->free < OH_PACE_LEAST ? 0 : h->live + h->free);
  oh_store_relaxed(&urgent, useless == 0);
  oh_store_relaxed(&was_by_time, by_time);
  oh_store_relaxed(&spent, (uint64_t)0);
  oh_store_relaxed(&shares, (uint64_t)0);
  oh_store_relaxed(&running, (uint64_t)0);
}

/* --- the heap ----------------------------------------------------------------------------------------------------- */

#define SLOTS 4096 /* OCaml has no more domains */
static size_t free_of[SLOTS];
static unsigned slots; /* those from here on have nothing */

void oh_pace_set_free(unsigned slot, size_t bytes)
{
  if (slot >= SLOTS) return;
  oh_store_relaxed(&free_of[slot], bytes);
  unsigned n = oh_load_relaxed(&slots);
  while (bytes != 0 && n <= slot && !oh_cas_seq_cst(&slots, &n, slot + 1)) {}
}

size_t oh_pace_free(void)
{
  size_t bytes = 0;
  for (unsigned i = 0, n = oh_load_relaxed(&slots); i < n; i++) bytes += oh_load_relaxed(&free_of[i]);
  return bytes;
}

void oh_pace_moved(struct oh_pace_heap const *h)
{
  oh_store_relaxed(&oh_pace_heap.live, h->live);
  oh_store_relaxed(&oh_pace_heap.free, h->free);
  oh_store_relaxed(&oh_pace_heap.partial, h->partial);
}

/* --- compaction --------------------------------------------------------------------------------------------------- */

/* What a compaction costs at first, in nanoseconds for each KiB of live data, of pools that are emptied, and of pools
   with room that are not: they are read, too, garbage and all. */
#define LIVE_COST 170
#define PARTIAL_COST 200
#define ASIDE_COST 120
#define RETAKEN_CYCLES 2 /* memory that is taken again within so many was given back too soon */
#define PATIENCE_MOST ((uint64_t)300000000000)

static double scale = 1;         /* what compactions have cost, to what they were predicted to */
static uint64_t predicted;       /* nanoseconds, of the one that is to come */
static uint64_t last, patience;  /* when the last one ended; how long not to begin another */
static size_t gained, left;      /* bytes: what the last one was to free, and what it left */
static unsigned cycles;          /* since then */
static bool more;                /* was a part of the pools left for the sake of time? */
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

static double choose(struct oh_pace_heap const *h, uint64_t now, bool idle)
{
  size_t percent = oh_load_relaxed(&overhead), all = h->live + h->free;
  predicted = 0;
  more = false;
  if (oh_settings.compact || percent == 1) return 1;
  if (percent > OH_PACE_OVERHEAD_NEVER) return 0;
  if (h->pressed) return 1;
  if (!oh_settings.reclaim) return 0;
  if (percent != 0 && h->free / 100 < h->live / 100 * ((percent - 1) / 100.0)) return 0;
  if (h->free < OH_PACE_LEAST || h->free < all / 4 || h->partial == 0) return 0;
  double limit = (double)(idle ? oh_settings.idle_pause : oh_settings.compact_pause);
  double live = (double)(h->live >> 10) * LIVE_COST * scale;
  double partial = (double)(h->partial >> 10) * PARTIAL_COST * scale, aside = partial / PARTIAL_COST * ASIDE_COST;
  double part = partial + live <= limit ? 1 : (limit - live - aside) / (partial - aside);
  bool little = part < 0.02 || (double)h->free * part < (double)OH_PACE_LEAST / 2;
  if (!little) predicted = (uint64_t)(live + partial * part + aside * (1 - part));
  more = !little;
  if (little && scale > 1) scale = scale * 0.95 > 1 ? scale * 0.95 : 1; /* a busy moment does not forbid it for ever */
  if (little || (last != 0 && now - last < predicted * OH_PACE_SHARE + patience))
    return count(&oh_pace_counters.refused, 1), 0;
  gained = (size_t)((double)h->free * part);
  left = all - gained;
  cycles = 0;
  more = part < 1;
  return part;
}

double oh_pace_cycle(struct oh_pace_heap const *h, uint64_t now, bool idle)
{
  end_cycle(h);
  look_back(h->live + h->free);
  oh_pace_moved(h);
  oh_store_relaxed(&oh_pace_heap.swept, h->swept);
  return choose(h, now, idle);
}

void oh_pace_compacted(uint64_t now, uint64_t nanoseconds)
{
  size_t took = (size_t)(nanoseconds / 1000);
  count(&oh_pace_counters.compactions, 1);
  if (took > oh_load_relaxed(&oh_pace_counters.longest)) oh_store_relaxed(&oh_pace_counters.longest, took);
  if (predicted != 0) {
    double ratio = (double)nanoseconds / (double)predicted, next = scale * (0.5 + ratio / 2);
    scale = next < 0.25 ? 0.25 : next > 16 ? 16 : next;
  }
  last = now;
}

bool oh_pace_more(void) { return more; }

void oh_pace_count_idle(void) { count(&oh_pace_counters.idle, 1); }
void oh_pace_count_request(void) { count(&oh_pace_counters.asked, 1); }

/* --- Gc.max_overhead ---------------------------------------------------------------------------------------------- */

size_t oh_pace_overhead(void)
{
  size_t percent = oh_load_relaxed(&overhead);
  return percent == 0 ? OH_PACE_OVERHEAD : percent - 1;
}

/* A program that sets another parameter gives back what it got. */
void oh_pace_set_overhead(size_t percent)
{
  if (percent != oh_pace_overhead()) oh_store_relaxed(&overhead, percent + 1);
}

/* As the runtime reads numbers: decimal or hexadecimal, with k, M or G. What is beyond all numbers is never, too. */
void oh_pace_read(char const *text)
{
  for (; text != NULL && *text != 0; text += strcspn(text, ","), text += *text == ',') {
    if (text[0] != 'O' || text[1] != '=' || strchr("0123456789", text[2]) == NULL || text[2] == 0) continue;
    char *end;
    int error = errno;
    unsigned long long n = strtoull(text + 2, &end, text[2] == '0' && text[3] == 'x' ? 16 : 10);
    errno = error;
    unsigned shift = *end == 'k' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    n = n < OH_PACE_OVERHEAD_NEVER ? n << shift : OH_PACE_OVERHEAD_NEVER;
    oh_store_relaxed(&overhead, (size_t)n + 1);
  }
}
