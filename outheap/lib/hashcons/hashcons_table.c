/* SPDX-License-Identifier: MIT */
#include "hashcons_table.h"
#include <stdlib.h>

typedef struct outheap_hashcons_table table;
typedef outheap_hashcons_cell cell;

enum { MIN_LOG = OUTHEAP_HASHCONS_TABLE_MIN_LOG, MAX_LOG = 48 };
#define SLOTS(t) ((size_t)1 << (t)->log)
#define TOMBSTONE ((uint64_t)1)
#define PREFETCH_DISTANCE 8 /* slots whose cells are prefetched */
#define LAST_PUTS 64

table *outheap_hashcons_table_all;
static size_t tables, abandoned; /* abandoned: since some were last freed */
static intnat epochs;          /* that were given */

static inline uint64_t mix(value hkey) { return (uint64_t)hkey * 0x9e3779b97f4a7c15u; }
static inline size_t home(table const *t, uint64_t mixed) { return mixed >> (64 - t->log); }
static inline uint64_t sign(uint64_t mixed) { return (mixed >> 8) << OUTHEAP_REGION_ADDRESS_BITS; }

static inline uint64_t hash_of(cell *c) { return mix((value)c[OUTHEAP_HASHCONS_HKEY]); }

table *outheap_hashcons_table_new(size_t cells)
{
  table *t = calloc(1, sizeof *t);
  if (t == NULL) return NULL;
  t->log = MIN_LOG;
  while (t->log < 22 && SLOTS(t) / 2 < cells) t->log++;
  t->slots = t->log == MIN_LOG ? t->first : calloc(SLOTS(t), sizeof *t->slots);
  if (t->slots == NULL) {
    free(t);
    return NULL;
  }
  t->epoch = ++epochs;
  t->swept = SIZE_MAX;
  t->next = outheap_hashcons_table_all;
  outheap_hashcons_table_all = t;
  tables++;
  return t;
}

/* --- searches ----------------------------------------------------------------------------------------------------- */

/* Finds the first cell with that hash from slot `i` on which is not dead; NULL: there is none. `i` becomes the slot
   behind it, or the one that was never used. */
static inline cell *find_from(table const *t, value hkey, uint64_t signature, size_t *i)
{
  size_t mask = SLOTS(t) - 1;
  for (uint64_t slot; (slot = t->slots[*i]) != 0;) {
    *i = (*i + 1) & mask;
    if ((slot ^ signature) >> OUTHEAP_REGION_ADDRESS_BITS != 0 || slot == TOMBSTONE) continue;
    cell *c = outheap_hashcons_table_cell_of(slot);
    if ((value)c[OUTHEAP_HASHCONS_HKEY] == hkey && !outheap_hashcons_mark_is_dead(c)) return c;
  }
  return NULL;
}

cell *outheap_hashcons_table_find(table const *t, value hkey)
{
  uint64_t m = mix(hkey);
  size_t i = home(t, m);
  return find_from(t, hkey, sign(m), &i);
}

/* Finds the position of a search in a table where it has none. If the search begins, a cell that lies before the first
   one came after that was found: the first pass ends before it. */
static void find_position(table const *t, value hkey, struct outheap_hashcons_table_search *s, cell *last)
{
  uint64_t m = mix(hkey);
  size_t start = home(t, m), i = start;
  bool begins = s->epoch == 0;
  s->epoch = t->epoch;
  if (begins) s->since = t->newest;
  cell *c;
  while ((c = find_from(t, hkey, sign(m), &i)) != NULL && c != last) {
    value before = (value)c[OUTHEAP_HASHCONS_TAG] - 2;
    if (begins && before < s->since) s->since = before;
  }
  s->at = c != NULL ? i : start;
}

cell *outheap_hashcons_table_next(table const *t, value hkey, struct outheap_hashcons_table_search *s, cell *last)
{
  uint64_t m = mix(hkey);
  if (s->epoch != t->epoch) find_position(t, hkey, s, last);
  for (;; s->at = home(t, m), s->newer = s->since, s->since = t->newest) {
    for (cell *c; (c = find_from(t, hkey, sign(m), &s->at)) != NULL;) {
      value tag = (value)c[OUTHEAP_HASHCONS_TAG];
      if (s->newer < tag && tag <= s->since) return c;
    }
    if (t->newest <= s->since) return NULL;
  }
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

/* Puts a cell into the first free slot from `i` on, and returns that slot. All slots from its home up to `i` are taken.
   */
static size_t put(table *t, cell *c, uint64_t mixed, size_t i)
{
  size_t mask = SLOTS(t) - 1;
  while (outheap_hashcons_table_holds(t->slots[i])) i = (i + 1) & mask;
  t->tombstones -= t->slots[i] == TOMBSTONE;
  t->slots[i] = (uint64_t)(uintptr_t)c | sign(mixed);
  t->used++;
  return i;
}

/* The slot where a cell with this home was put last: the next one begins there, and not at its home. */
struct last { size_t home, slot; };

/* Moves the cells to a new array, but for dead ones, which are freed. Returns false if there is no memory; then nothing
   has changed. It begins behind a slot that was never used: then the cells between two such slots come in their order,
   and of two cells with the same home the first one is put first, so that it is the first one again. */
static bool rehash(table *t, unsigned log)
{
  uint64_t *old = t->slots, *new = log > MAX_LOG ? NULL : calloc((size_t)1 << log, sizeof *new);
  size_t n = SLOTS(t), start = 0;
  struct last last[LAST_PUTS];
  if (new == NULL) return false;
  while (old[start] != 0) start++;
  for (size_t i = 0; i < LAST_PUTS; i++) last[i].home = SIZE_MAX;
  t->slots = new;
  t->log = log;
  t->used = t->tombstones = 0;
  t->epoch = ++epochs;
  t->swept = SIZE_MAX;
  for (size_t i = 1; i < n; i++) {
    uint64_t slot = old[(start + i) & (n - 1)];
    __builtin_prefetch(outheap_hashcons_table_cell_of(old[(start + i + PREFETCH_DISTANCE) & (n - 1)]));
    if (!outheap_hashcons_table_holds(slot)) continue;
    cell *c = outheap_hashcons_table_cell_of(slot);
    if (outheap_hashcons_mark_is_dead(c)) outheap_hashcons_memory_free(c);
    else {
      uint64_t m = hash_of(c);
      size_t h = home(t, m);
      struct last *l = &last[h % LAST_PUTS];
      *l = (struct last){ h, put(t, c, m, l->home == h ? l->slot : h) };
    }
  }
  if (old != t->first) free(old);
  return true;
}

bool outheap_hashcons_table_reserve(table *t)
{
  if (3 * (t->used + t->tombstones + 1) <= 2 * SLOTS(t)) return true;
  /* With many tombstones the new array has the same size. */
  if (rehash(t, 3 * (t->used + 1) <= SLOTS(t) ? t->log : t->log + 1)) return true;
  return t->used + t->tombstones + 2 <= SLOTS(t); /* crowded: one is left free, where a search ends */
}

void outheap_hashcons_table_add(table *t, cell *c)
{
  uint64_t m = hash_of(c);
  (void)put(t, c, m, home(t, m));
  t->newest = (value)c[OUTHEAP_HASHCONS_TAG];
}

/* --- ends --------------------------------------------------------------------------------------------------------- */

static table **sweep; /* the link to the table that is being swept */

/* Frees a table without cells. */
static void drop(table **at)
{
  table *t = *at;
  *at = t->next;
  if (t->slots != t->first) free(t->slots);
  free(t);
  tables--;
}

/* Frees abandoned tables without cells. Not in the phase SWEEP. */
static void drop_empty(void)
{
  for (table **at = &outheap_hashcons_table_all; *at != NULL;)
    if ((*at)->abandoned && (*at)->used == 0) drop(at);
    else at = &(*at)->next;
  abandoned = 0;
}

void outheap_hashcons_table_abandon(table *t)
{
  t->abandoned = true;
  if (++abandoned <= 50 || 2 * abandoned <= tables) return;
  if (outheap_hashcons_reach.phase != OUTHEAP_HASHCONS_SWEEP) drop_empty();
}

static void sweep_slots(table *t, size_t from, size_t to)
{
  for (size_t i = from; i < to; i++) {
    if (!outheap_hashcons_table_holds(t->slots[i])) continue;
    cell *c = outheap_hashcons_table_cell_of(t->slots[i]);
    if (outheap_hashcons_mark_is_set(c)) continue;
    outheap_hashcons_memory_free(c);
    t->slots[i] = TOMBSTONE;
    t->used--;
    t->tombstones++;
  }
  t->swept = to;
}

/* Goes on to the next table. */
static void sweep_next(void)
{
  table *t = *sweep;
  if (t->abandoned && t->used == 0) drop(sweep);
  else {
    unsigned less = t->log < MIN_LOG + 2 ? MIN_LOG : t->log - 2;
    if (t->swept != SIZE_MAX && t->log > MIN_LOG && 16 * t->used < SLOTS(t)) (void)rehash(t, less);
    sweep = &t->next;
  }
  if (*sweep == NULL) return;
  (*sweep)->swept = 0;
  __builtin_prefetch((*sweep)->next);
}

void outheap_hashcons_table_sweep_begin(void)
{
  abandoned = 0;
  sweep = &outheap_hashcons_table_all;
  if (*sweep != NULL) (*sweep)->swept = 0;
}

size_t outheap_hashcons_table_sweep(size_t slots)
{
  size_t done = 0;
  while (*sweep != NULL && done < slots) {
    table *t = *sweep;
    size_t n = SLOTS(t), from = t->swept, most = slots - done;
    if (from < n) {
      size_t to = n - from < most ? n : from + most;
      sweep_slots(t, from, to);
      done += to - from;
    }
    if (t->swept >= n) {
      sweep_next();
      done++;
    }
  }
  return done;
}
