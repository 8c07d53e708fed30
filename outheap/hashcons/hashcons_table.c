/* SPDX-License-Identifier: MIT */
#include "hashcons_table.h"
#include <stdlib.h>

typedef struct outheap_hashcons_table table;
typedef outheap_hashcons_cell cell;

enum { LEAST = 4, MOST = 48 }; /* of `log` */
#define SLOTS(t) ((size_t)1 << (t)->log)
#define GONE ((uint64_t)1)
#define AHEAD 8 /* slots whose cells are prefetched */

table *outheap_hashcons_table_all;
static size_t tables, orphans; /* orphans: since it was last tried to free some */

static inline uint64_t mix(value hkey) { return (uint64_t)hkey * 0x9e3779b97f4a7c15u; }
static inline size_t home(table const *t, uint64_t mixed) { return mixed >> (64 - t->log); }
static inline uint64_t sign(uint64_t mixed) { return (mixed >> 8 & 0xffff) << 48; }

static inline uint64_t hash_of(cell *c) { return mix((value)c[OUTHEAP_HASHCONS_HKEY]); }

table *outheap_hashcons_table_new(size_t cells)
{
  table *t = calloc(1, sizeof *t);
  if (t == NULL) return NULL;
  t->log = LEAST;
  while (t->log < 22 && SLOTS(t) / 2 < cells) t->log++;
  t->slots = calloc(SLOTS(t), sizeof *t->slots);
  if (t->slots == NULL) {
    free(t);
    return NULL;
  }
  t->next = outheap_hashcons_table_all;
  outheap_hashcons_table_all = t;
  tables++;
  return t;
}

cell *outheap_hashcons_table_find(table const *t, value hkey, cell *after)
{
  uint64_t m = mix(hkey), s = sign(m);
  size_t mask = SLOTS(t) - 1;
  for (size_t i = home(t, m);; i = (i + 1) & mask) {
    uint64_t slot = t->slots[i];
    if (slot == 0) return NULL;
    if ((slot ^ s) >> 48 != 0 || slot == GONE) continue;
    cell *c = outheap_hashcons_table_cell_of(slot);
    if (after != NULL) {
      if (c == after) after = NULL;
    }
    else if ((value)c[OUTHEAP_HASHCONS_HKEY] == hkey && !outheap_hashcons_notes_is_dead(c)) return c;
  }
}

static void put(table *t, cell *c)
{
  uint64_t m = hash_of(c);
  size_t mask = SLOTS(t) - 1, i = home(t, m);
  while (outheap_hashcons_table_holds(t->slots[i])) i = (i + 1) & mask;
  t->gone -= t->slots[i] == GONE;
  t->slots[i] = (uint64_t)(uintptr_t)c | sign(m);
  t->used++;
}

/* Moves the cells to a new array, but for dead ones, which are freed. False: no memory, and nothing has changed. */
static bool rehash(table *t, unsigned log)
{
  uint64_t *old = t->slots, *new = log > MOST ? NULL : calloc((size_t)1 << log, sizeof *new);
  size_t n = SLOTS(t);
  if (new == NULL) return false;
  t->slots = new;
  t->log = log;
  t->used = t->gone = 0;
  t->stamp++;
  t->swept = SIZE_MAX;
  for (size_t i = 0; i < n; i++) {
    if (i + AHEAD < n) __builtin_prefetch(outheap_hashcons_table_cell_of(old[i + AHEAD]));
    if (!outheap_hashcons_table_holds(old[i])) continue;
    cell *c = outheap_hashcons_table_cell_of(old[i]);
    if (outheap_hashcons_notes_is_dead(c)) outheap_hashcons_memory_free(c);
    else put(t, c);
  }
  free(old);
  return true;
}

bool outheap_hashcons_table_reserve(table *t)
{
  if (3 * (t->used + t->gone + 1) <= 2 * SLOTS(t)) return true;
  /* mostly slots that were used: the same size again */
  if (rehash(t, 3 * (t->used + 1) <= SLOTS(t) ? t->log : t->log + 1)) return true;
  return t->used + t->gone + 2 <= SLOTS(t); /* crowded: one is left free, where a search ends */
}

void outheap_hashcons_table_add(table *t, cell *c)
{
  put(t, c);
  t->stamp++;
}

size_t outheap_hashcons_table_sweep(table *t, size_t slots)
{
  size_t n = SLOTS(t), from = t->swept;
  if (from >= n) {
    unsigned less = t->log < LEAST + 2 ? LEAST : t->log - 2;
    if (from != SIZE_MAX && t->log > LEAST && 16 * t->used < n) (void)rehash(t, less);
    t->swept = SIZE_MAX;
    return 0;
  }
  size_t to = n - from < slots ? n : from + slots;
  for (size_t i = from; i < to; i++) {
    if (!outheap_hashcons_table_holds(t->slots[i])) continue;
    cell *c = outheap_hashcons_table_cell_of(t->slots[i]);
    if (outheap_hashcons_notes_is_marked(c)) continue;
    outheap_hashcons_memory_free(c);
    t->slots[i] = GONE;
    t->used--;
    t->gone++;
  }
  t->swept = to;
  return to - from;
}

void outheap_hashcons_table_drop_empty(void)
{
  for (table **at = &outheap_hashcons_table_all, *t; (t = *at) != NULL;)
    if (t->orphan && t->used == 0) {
      *at = t->next;
      free(t->slots);
      free(t);
      tables--;
    }
    else at = &t->next;
  orphans = 0;
}

void outheap_hashcons_table_orphan(table *t)
{
  t->orphan = true;
  if (++orphans > 50 && 2 * orphans > tables && outheap_hashcons_notes.phase != OUTHEAP_HASHCONS_SWEEP)
    outheap_hashcons_table_drop_empty();
}
