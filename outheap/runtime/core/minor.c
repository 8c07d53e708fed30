/* SPDX-License-Identifier: MIT */
#include "minor.h"
#include "settings.h"
#include <string.h>

/* Collections in a window: until the heap has OH_MINOR_EASY words, and beyond that. */
#define WINDOW_WHEN_SMALL 2
#define WINDOW_WHEN_LARGE 4
/* Shares of the time: above the first the heap may grow, below the second it shrinks. */
#define GROW_ABOVE_SHARE 0.03
#define SHRINK_BELOW_SHARE 0.002
#define SHRINK_AFTER 100000000 /* nanoseconds with such a small share */
#define GAIN_LEAST 0.02        /* of the time: what the next doubling must be expected to save */
/* With a smaller share of promoted words, a collection costs what it costs in any heap. */
#define PROMOTED_LEAST 0.01
/* With a larger change of the share of promoted words, in proportion, the program does something else; that is asked
   when so many windows are over. */
#define PROMOTED_CHANGE 0.25
#define SETTLED_AFTER 16
/* What is left, after one more, of the past: of windows, and of the longest pause. */
#define WINDOW_DECAY 0.97
#define PAUSE_DECAY 0.97
/* Half the heap must make a pause shorter than this part of it; otherwise pauses do not count for so many windows. */
#define PAUSE_SHORTER_THAN 0.8
#define PAUSES_IGNORED_FOR 256
/* Costs of the larger size in proportion to those of the smaller one: what is worth the memory is below the first. A
   trial ends at once below the second; with a prediction that promises much, below the third; early, below the fourth
   or above the fifth. */
#define WORTH_BELOW 0.99
#define END_AT_ONCE_BELOW 0.75
#define CONFIRMED_BELOW 1.0
#define END_EARLY_BELOW 0.94
#define END_EARLY_ABOVE 1.05
/* Windows between trials: at first, at most; and after a refusal. */
#define WAIT_FIRST 8
#define WAIT_MOST 256
#define WAIT_WHEN_REFUSED 32
/* A domain is idle after so many collections in which less than this part of the heap was allocated. */
#define IDLE_COLLECTIONS 8
#define IDLE_PART 16

struct oh_minor_counters oh_minor_counters;
static size_t all; /* words */

void oh_minor_begin(struct oh_minor *m, uint64_t used) { m->began = used; }

/* What a word in the major heap costs there, in nanoseconds. */
static double cost_of_major_word(struct oh_minor const *m)
{
  return m->major_words > 0 ? m->slices_ns / m->major_words : 0;
}

static void record_pause(struct oh_minor *m, size_t words, double took)
{
  double word = took / (double)words;
  if (word > m->pause_word) m->pause_word = word;
  if (took > (double)oh_settings.pause) m->over = (uint64_t)took;
}

void oh_minor_slice(struct oh_minor *m, size_t words, uint64_t took)
{
  double most = 2 * cost_of_major_word(m) * (double)m->promoted, counts = (double)took;
  m->slices += took;
  if (oh_settings.pause != 0) record_pause(m, words, counts < most ? counts : most);
}

void oh_minor_end(struct oh_minor *m, struct oh_minor_collection const *c)
{
  uint64_t before = m->used, slices = m->slices, took = c->used > m->began ? c->used - m->began : 0;
  bool same = before != 0 && m->alone == c->alone;
  m->used = c->used;
  m->alone = c->alone;
  m->slices = 0;
  m->promoted = c->promoted;
  m->remembered = c->remembered;
  m->pause_word *= PAUSE_DECAY;
  if (oh_settings.pause != 0) record_pause(m, c->words, (double)took);
  if (!same || (c->alone && !c->remembered && c->allocated < c->words / 2)) return;
  m->idle = !c->alone && !c->remembered && c->allocated < c->words / IDLE_PART ? m->idle + 1 : 0;
  if (m->fresh) {
    m->fresh = false;
    return;
  }
  m->window.whole += c->used - before;
  m->window.collecting += took;
  m->window.slices += slices;
  m->window.allocated += c->allocated;
  m->window.promoted += c->promoted;
  m->window.major += c->major;
  m->window.filled += c->remembered ? c->words : c->allocated;
  m->window.collections++;
}

static size_t next_larger(size_t words)
{
  if (words >= oh_settings.minor_most) return words;
  size_t twice = words > oh_settings.minor_most / 2 ? oh_settings.minor_most : 2 * words;
  return twice > oh_settings.minor_least ? twice : oh_settings.minor_least;
}

static size_t next_smaller(size_t words, size_t part)
{
  if (words <= oh_settings.minor_least) return words;
  size_t less = words / part;
  return less < oh_settings.minor_least ? oh_settings.minor_least : less;
}

static void begin_window(struct oh_minor *m)
{
  memset(&m->window, 0, sizeof m->window);
}

/* --- trials: small, large, large, small, and again -----------------------------------------------------------------*/

static size_t size_of_step(struct oh_minor const *m) { return (m->step + 1) / 2 % 2 == 0 ? m->small : m->large; }

static size_t begin_trial(struct oh_minor *m, size_t now, size_t small, size_t large)
{
  m->small = small;
  m->large = large;
  m->step = 0;
  memset(m->row, 0, sizeof m->row);
  m->predicted = 0;
  m->upwards = now == small;
  return size_of_step(m);
}

static void end_trial(struct oh_minor *m, unsigned wait)
{
  m->large = 0;
  m->wait = wait;
}

struct rows { double least, most, middle; };

/* `middle` is the mean, without the least and the most when there are more than two: a row in which the program waited
   for something does not count. */
static struct rows summarise_rows(double const *ratio, unsigned rows)
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

/* What the larger size should cost, beside the smaller one, by the words that are promoted: they do not depend on what
   else the machine does, but say nothing of caches. With next to none promoted half of the collections' time would be
   saved, of which caches are left a half. */
static double predict_ratio(double share, double small, double large)
{
  return small < PROMOTED_LEAST ? 1 - share / 4 : 1 - share * (1 - large / small);
}

/* Of stores into old blocks more is saved than the share says: while marking is under way, each looks at what was there
   before, if that is old. */
static double least_gain(struct oh_minor const *m) { return m->remembered ? GAIN_LEAST / 4 : GAIN_LEAST; }

/* One row that leaves no doubt is enough, and one that does not contradict a prediction that promises much; two that
   agree, or four. */
static bool is_enough(struct rows r, unsigned rows, bool promising)
{
  bool agreed = rows >= OH_MINOR_ROWS / 2;
  if (r.most < END_AT_ONCE_BELOW || (promising && r.middle < CONFIRMED_BELOW)) return true;
  if (rows < 2 || rows == OH_MINOR_ROWS) return rows == OH_MINOR_ROWS;
  return (r.middle <= END_EARLY_BELOW && (agreed || r.most < WORTH_BELOW)) ||
         (r.middle >= END_EARLY_ABOVE && (agreed || r.least > 1));
}

static bool pauses_allow(struct oh_minor const *m, size_t words)
{
  return oh_settings.pause == 0 || m->helpless != 0 || m->pause_word * (double)words <= (double)oh_settings.pause;
}

/* After growth, and where more is expected of it, the next trial follows at once; after another change soon, in the
   same direction; otherwise later and later, and in the other direction. */
static size_t end_trial_by(struct oh_minor *m, bool grow, bool promising)
{
  size_t small = m->small, large = m->large, next = next_larger(large);
  bool changed = grow == m->upwards;
  if (m->patience < WAIT_FIRST) m->patience = WAIT_FIRST;
  end_trial(m, m->patience);
  m->patience = changed ? m->patience / 2 : m->patience < WAIT_MOST ? 2 * m->patience : WAIT_MOST;
  if (!changed) m->upwards = !m->upwards;
  if (!grow) return small;
  return (changed || promising) && next != large && pauses_allow(m, next) ? begin_trial(m, large, large, next) : large;
}

/* A window of a trial is over. */
static size_t end_trial_window(struct oh_minor *m, double cost, double share, double promoted)
{
  bool large = size_of_step(m) == m->large;
  m->row[large].cost += cost;
  m->row[large].promoted += promoted;
  m->row[large].share += share;
  m->step++;
  if (m->step % 4 != 0) return size_of_step(m);
  unsigned rows = m->step / 4;
  m->ratio[rows - 1] = m->row[1].cost / m->row[0].cost;
  m->predicted += predict_ratio(m->row[0].share / 2, m->row[0].promoted / 2, m->row[1].promoted / 2);
  memset(m->row, 0, sizeof m->row);
  struct rows r = summarise_rows(m->ratio, rows);
  double prediction = m->predicted / rows;
  bool promising = prediction < 1 - least_gain(m);
  if (!is_enough(r, rows, promising)) return size_of_step(m);
  bool grow = (rows * r.middle + prediction) / (rows + 1) < WORTH_BELOW || (promising && r.middle < CONFIRMED_BELOW);
  return end_trial_by(m, grow, promising);
}

/* --- what a window says --------------------------------------------------------------------------------------------*/

/* What doubling the heap would save, of the time. The program tells by the words that it promotes, which do not depend
   on what else the machine does: each doubling saves as much of them as the one before. */
static double expect_gain(struct oh_minor const *m, double share, double promoted)
{
  if (promoted >= PROMOTED_LEAST && m->before == 0) return share / 4;
  return 1 - predict_ratio(share, promoted < PROMOTED_LEAST ? promoted : m->before, promoted);
}

/* Does it grow at once, without a trial? As long as it is worth it, at first and when the program has changed. */
static bool grows_at_once(struct oh_minor *m, bool more, double share, double promoted)
{
  if (m->settled != 0) {
    if (m->settled < SETTLED_AFTER) m->settled++;
    double change = promoted - m->at;
    if (change < 0) change = -change;
    if (m->settled < SETTLED_AFTER || change < PROMOTED_CHANGE * m->at + PROMOTED_LEAST) return false;
    m->before = 0;
    m->settled = 0;
  }
  if (more && expect_gain(m, share, promoted) > least_gain(m)) {
    m->before = promoted;
    return true;
  }
  if (m->before != 0) m->upwards = false; /* was the last one worth it? */
  m->at = promoted;
  m->settled = 1;
  return false;
}

static size_t decide_size(struct oh_minor *m, size_t words, double whole, double share, double promoted)
{
  m->quiet = share < SHRINK_BELOW_SHARE ? m->quiet + (uint64_t)whole : 0;
  if (m->quiet >= SHRINK_AFTER) {
    m->quiet = 0;
    return next_smaller(words, 2);
  }
  size_t next = next_larger(words), less = next_smaller(words, 2);
  bool more = share > GROW_ABOVE_SHARE && next != words && pauses_allow(m, next);
  bool waits = m->wait != 0;
  if (waits) m->wait--;
  if (next <= OH_MINOR_EASY) return more && !waits ? next : words;
  if (grows_at_once(m, more, share, promoted)) return next;
  if (waits) return words;
  bool fewer = words > OH_MINOR_EASY && words <= oh_settings.minor_most && less != words;
  if (fewer && (!m->upwards || !more)) return begin_trial(m, words, less, words);
  return more ? begin_trial(m, words, words, next) : words;
}

static bool is_window(struct oh_minor const *m, size_t words)
{
  if (oh_minor_tries(m)) return m->window.filled >= m->large - m->large / 16;
  return m->window.collections >= (words < OH_MINOR_EASY || m->settled == 0 ? WINDOW_WHEN_SMALL : WINDOW_WHEN_LARGE);
}

/* The windows before, this one included. */
static void age_costs(struct oh_minor *m)
{
  m->slices_ns = WINDOW_DECAY * m->slices_ns + (double)m->window.slices;
  m->major_words = WINDOW_DECAY * m->major_words + (double)m->window.major;
  if (m->helpless != 0) m->helpless--;
}

/* After a pause that was too long; the size is `words`. */
static size_t shrink_for_pause(struct oh_minor *m, size_t words)
{
  uint64_t over = m->over;
  size_t less = next_smaller(words, 2);
  bool helped = m->probe == 0 || (double)over < PAUSE_SHORTER_THAN * (double)m->probe;
  m->over = 0;
  if (m->helpless != 0) return words;
  if (!helped) {
    m->helpless = PAUSES_IGNORED_FOR;
    m->probe = 0;
    return words;
  }
  if (less == words) return words;
  m->probe = over;
  m->settled = 1;
  end_trial(m, WAIT_FIRST);
  return less;
}

size_t oh_minor_choose(struct oh_minor *m, size_t words)
{
  if (m->idle == IDLE_COLLECTIONS) {
    m->idle = 0;
    end_trial(m, 0);
    return next_smaller(words, 4);
  }
  if (m->over != 0) {
    size_t less = shrink_for_pause(m, words);
    if (less != words) return less;
  }
  if (!is_window(m, words)) return words;
  age_costs(m);
  m->probe = 0;
  double whole = (double)m->window.whole, allocated = (double)m->window.allocated;
  double promoting = (double)m->window.promoted * cost_of_major_word(m);
  double share = ((double)m->window.collecting + promoting) / whole;
  double cost = (whole - (double)m->window.slices + promoting) / allocated;
  double promoted = (double)m->window.promoted / allocated;
  bool full = m->window.filled >= words / 2 * m->window.collections && allocated > 0;
  begin_window(m);
  if (full && oh_minor_tries(m)) return end_trial_window(m, cost, share, promoted);
  if (full) return decide_size(m, words, whole, share, promoted);
  if (!oh_minor_tries(m)) return words;
  size_t small = m->small; /* others decide when it is collected */
  end_trial(m, WAIT_WHEN_REFUSED);
  return small;
}

void oh_minor_changed(struct oh_minor *m, size_t before, size_t after)
{
  begin_window(m);
  m->fresh = after > before;
  m->over = 0;
  if (after > before) oh_fetch_add_relaxed(&oh_minor_counters.grown, 1);
  else if (after < before) oh_fetch_add_relaxed(&oh_minor_counters.shrunk, 1);
  else {
    oh_fetch_add_relaxed(&oh_minor_counters.refused, 1);
    m->settled = 1;
    end_trial(m, WAIT_WHEN_REFUSED);
  }
}

void oh_minor_account(size_t before, size_t after) { oh_fetch_add_relaxed(&all, after - before); }

bool oh_minor_allows(size_t more) { return oh_load_relaxed(&all) + more <= OH_MINOR_ALL * oh_settings.minor_most; }
