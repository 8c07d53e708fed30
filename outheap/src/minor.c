/* SPDX-License-Identifier: MIT */
#include "minor.h"
#include "atomic.h"
#include "settings.h"

#define SHORT 2           /* collections: a window, until the size is what is easy */
#define WINDOW 4          /* beyond that */
#define MUCH 0.02         /* shares */
#define LITTLE 0.002
#define WORTH 0.75        /* of the cost before */
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
  double cost = (double)(now - m->began) / (double)(allocated + 1);
  if (m->collections == 0 || cost < m->cost) m->cost = cost;
  m->whole += now - before;
  m->collecting += now - m->began;
  m->allocated += allocated;
  m->collections++;
  m->idle = !alone && allocated < words / IDLE_PART ? m->idle + 1 : 0;
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

/* It doubled, and did not do better. */
static size_t give_up(struct oh_minor *m, size_t words)
{
  m->wait = m->patience == 0 ? PATIENCE : m->patience;
  m->patience = m->wait < PATIENCE_MOST ? 2 * m->wait : PATIENCE_MOST;
  return smaller(words, 2);
}

static size_t judge(struct oh_minor *m, size_t words, uint64_t whole, uint64_t collecting)
{
  double share = (double)collecting / (double)whole, before = m->before;
  m->before = 0;
  if (before != 0 && m->cost > WORTH * before) return give_up(m, words);
  if (before != 0) m->patience = 0;
  m->quiet = share < LITTLE ? m->quiet + whole : 0;
  if (m->quiet >= QUIET) {
    m->quiet = 0;
    return smaller(words, 2);
  }
  size_t next = larger(words);
  if (share <= MUCH || next == words) return words;
  if (m->wait != 0) {
    m->wait--;
    return words;
  }
  if (next <= OH_MINOR_EASY) return next;
  m->before = m->cost;
  return next;
}

size_t oh_minor_choose(struct oh_minor *m, size_t words)
{
  if (m->idle == IDLE) {
    m->idle = m->wait = 0;
    m->before = 0;
    return smaller(words, 4);
  }
  if (m->collections < (words < OH_MINOR_EASY ? SHORT : WINDOW)) return words;
  uint64_t whole = m->whole, collecting = m->collecting;
  bool full = m->allocated >= words / 2 * m->collections;
  begin_window(m);
  if (full) return judge(m, words, whole, collecting);
  m->before = 0; /* others decide when it is collected */
  return words;
}

void oh_minor_changed(struct oh_minor *m, size_t before, size_t after)
{
  begin_window(m);
  if (after > before) oh_fetch_add_relaxed(&oh_minor_counters.grown, 1);
  else if (after < before) oh_fetch_add_relaxed(&oh_minor_counters.shrunk, 1);
  else {
    oh_fetch_add_relaxed(&oh_minor_counters.refused, 1);
    m->before = 0;
    m->wait = REFUSED;
  }
}

void oh_minor_account(size_t before, size_t after) { oh_fetch_add_relaxed(&all, after - before); }

bool oh_minor_allows(size_t more) { return oh_load_relaxed(&all) + more <= OH_MINOR_ALL * oh_settings.minor_most; }
