/* SPDX-License-Identifier: MIT */
#include "minor.h"
#include "atomic.h"
#include "settings.h"

#define SHORT 2           /* collections: a window, until the size is what is easy */
#define WINDOW 4          /* beyond that */
#define MUCH 0.02         /* shares */
#define LITTLE 0.002
#define WORTH 0.99        /* of the smaller size's cost: what is less is worth the memory */
#define CLEAR 0.94        /* a trial ends early with less than this */
#define CLEARLY_NOT 1.05  /* or more than this */
#define QUIET 100000000   /* nanoseconds with little */
#define PATIENCE 8        /* windows */
#define PATIENCE_MOST 256
#define REFUSED 32        /* windows */
#define IDLE 8            /* collections */
#define IDLE_PART 16      /* of the heap */

struct oh_minor_counters oh_minor_counters;
static size_t all; /* words */

void oh_minor_begin(struct oh_minor *m, uint64_t now) { m->began = now; }

void oh_minor_end(struct oh_minor *m, uint64_t now, size_t allocated, size_t words, bool alone)
{
  uint64_t before = m->ended;
  m->ended = now;
  if (before == 0 || (alone && allocated < words / 2)) return;
  m->idle = !alone && allocated < words / IDLE_PART ? m->idle + 1 : 0;
  if (m->fresh) {
    m->fresh = false;
    return;
  }
  m->whole += now - before;
  m->collecting += now - m->began;
  m->allocated += allocated;
  m->collections++;
}

static size_t larger(size_t words)
{
  if (words >= oh_settings.minor_most) return words;
  size_t twice = words > oh_settings.minor_most / 2 ? oh_settings.minor_most : 2 * words;
  return twice > oh_settings.minor_least ? twice : oh_settings.minor_least;
}

static size_t smaller(size_t words, size_t part)
{
  if (words <= oh_settings.minor_least) return words;
  size_t less = words / part;
  return less < oh_settings.minor_least ? oh_settings.minor_least : less;
}

static void begin_window(struct oh_minor *m)
{
  m->whole = m->collecting = 0;
  m->allocated = 0;
  m->collections = 0;
}

/* --- trials: small, large, large, small, and again -----------------------------------------------------------------*/

static size_t of_step(struct oh_minor const *m) { return (m->step + 1) / 2 % 2 == 0 ? m->small : m->large; }

static size_t try_sizes(struct oh_minor *m, size_t now, size_t small, size_t large)
{
  m->small = small;
  m->large = large;
  m->step = 0;
  m->cost[0] = m->cost[1] = 0;
  m->upwards = now == small;
  return of_step(m);
}

static void end_trial(struct oh_minor *m, unsigned wait)
{
  m->large = 0;
  m->wait = wait;
}

struct rows { double least, most, middle; };

/* `middle` is the mean, without the least and the most when there are more than two: a row in which the program waited
   for something does not count. */
static struct rows of_rows(double const *ratio, unsigned rows)
{
  struct rows r = { .least = ratio[0], .most = ratio[0] };
  double sum = 0;
  for (unsigned i = 0; i < rows; i++) {
    r.least = ratio[i] < r.least ? ratio[i] : r.least;
    r.most = ratio[i] > r.most ? ratio[i] : r.most;
    sum += ratio[i];
  }
  r.middle = rows > 2 ? (sum - r.least - r.most) / (rows - 2) : sum / rows;
  return r;
}

/* Two rows that agree are enough, or four. */
static bool is_enough(struct rows r, unsigned rows)
{
  bool agreed = rows >= OH_MINOR_ROWS / 2;
  if (rows < 2 || rows == OH_MINOR_ROWS) return rows == OH_MINOR_ROWS;
  return (r.middle <= CLEAR && (agreed || r.most < WORTH)) || (r.middle >= CLEARLY_NOT && (agreed || r.least > 1));
}

/* After growth the next trial follows at once; after another change soon, in the same direction; otherwise later and
   later, and in the other direction. */
static size_t decide(struct oh_minor *m, bool grow)
{
  size_t small = m->small, large = m->large, next = larger(large);
  bool changed = grow == m->upwards;
  if (m->patience < PATIENCE) m->patience = PATIENCE;
  end_trial(m, m->patience);
  m->patience = changed ? m->patience / 2 : m->patience < PATIENCE_MOST ? 2 * m->patience : PATIENCE_MOST;
  if (!changed) m->upwards = !m->upwards;
  if (!grow) return small;
  return changed && next != large ? try_sizes(m, large, large, next) : large;
}

/* A window of a trial is over. */
static size_t step(struct oh_minor *m, double cost)
{
  m->cost[of_step(m) == m->large] += cost;
  m->step++;
  if (m->step % 4 != 0) return of_step(m);
  unsigned rows = m->step / 4;
  m->ratio[rows - 1] = m->cost[1] / m->cost[0];
  m->cost[0] = m->cost[1] = 0;
  struct rows r = of_rows(m->ratio, rows);
  return is_enough(r, rows) ? decide(m, r.middle < WORTH) : of_step(m);
}

/* --- what a window says --------------------------------------------------------------------------------------------*/

static size_t judge(struct oh_minor *m, size_t words, uint64_t whole, uint64_t collecting)
{
  double share = (double)collecting / (double)whole;
  m->quiet = share < LITTLE ? m->quiet + whole : 0;
  if (m->quiet >= QUIET) {
    m->quiet = 0;
    return smaller(words, 2);
  }
  size_t next = larger(words), less = smaller(words, 2);
  bool more = share > MUCH && next != words;
  if (m->wait != 0) {
    m->wait--;
    return words;
  }
  if (next <= OH_MINOR_EASY) return more ? next : words;
  bool fewer = words > OH_MINOR_EASY && words <= oh_settings.minor_most && less != words;
  if (fewer && (!m->upwards || !more)) return try_sizes(m, words, less, words);
  return more ? try_sizes(m, words, words, next) : words;
}

static bool is_window(struct oh_minor const *m, size_t words)
{
  if (oh_minor_tries(m)) return m->allocated >= m->large - m->large / 16;
  return m->collections >= (words < OH_MINOR_EASY ? SHORT : WINDOW);
}

size_t oh_minor_choose(struct oh_minor *m, size_t words)
{
  if (m->idle == IDLE) {
    m->idle = 0;
    end_trial(m, 0);
    return smaller(words, 4);
  }
  if (!is_window(m, words)) return words;
  uint64_t whole = m->whole, collecting = m->collecting;
  size_t allocated = m->allocated;
  bool full = allocated >= words / 2 * m->collections;
  begin_window(m);
  if (full && oh_minor_tries(m)) return step(m, (double)whole / (double)allocated);
  if (full) return judge(m, words, whole, collecting);
  if (!oh_minor_tries(m)) return words;
  size_t small = m->small; /* others decide when it is collected */
  end_trial(m, REFUSED);
  return small;
}

void oh_minor_changed(struct oh_minor *m, size_t before, size_t after)
{
  begin_window(m);
  m->fresh = after > before;
  if (after > before) oh_fetch_add_relaxed(&oh_minor_counters.grown, 1);
  else if (after < before) oh_fetch_add_relaxed(&oh_minor_counters.shrunk, 1);
  else {
    oh_fetch_add_relaxed(&oh_minor_counters.refused, 1);
    end_trial(m, REFUSED);
  }
}

void oh_minor_account(size_t before, size_t after) { oh_fetch_add_relaxed(&all, after - before); }

bool oh_minor_allows(size_t more) { return oh_load_relaxed(&all) + more <= OH_MINOR_ALL * oh_settings.minor_most; }
