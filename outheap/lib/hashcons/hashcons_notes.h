/* SPDX-License-Identifier: MIT */
/* Which cells pointers led to, and where the collection of cells is.

   Each chunk begins with two bitmaps, with a bit for each of its words (outheap_marker.h). One is *current*: markers
   write to it, and so do lookups and births, atomically. The other one is empty while no collection runs (IDLE).
   Between two cycles they change places, and the collection works on what was noted:
     SCAN   each noted cell is marked, and what it leads to (CLOSE: the same, with nothing left to look for)
     SWEEP  cells of tables that are not marked are dead: lookups pass over them, and they are freed
     CLEAR  the bitmap is emptied
   A mark is the bit of the cell's first word, to which no pointer leads. It means something from SCAN to SWEEP. */
#ifndef OUTHEAP_HASHCONS_NOTES_H
#define OUTHEAP_HASHCONS_NOTES_H

#include "hashcons_config.h"

enum outheap_hashcons_phase {
  OUTHEAP_HASHCONS_IDLE, OUTHEAP_HASHCONS_SCAN, OUTHEAP_HASHCONS_CLOSE, OUTHEAP_HASHCONS_SWEEP, OUTHEAP_HASHCONS_CLEAR
};

/* Both change under the lock only; the number of the current map while all domains are stopped. Without the lock
   `phase` is read by those who only ask whether there is something to do. */
struct outheap_hashcons_notes { enum outheap_hashcons_phase phase; int current; };
extern struct outheap_hashcons_notes outheap_hashcons_notes;

static inline void outheap_hashcons_notes_enter(enum outheap_hashcons_phase p)
{
  __atomic_store_n(&outheap_hashcons_notes.phase, p, __ATOMIC_RELAXED);
}

static inline uint64_t *outheap_hashcons_notes_word(uintptr_t address, int map)
{
  uintptr_t chunk = address & ~((uintptr_t)OUTHEAP_HASHCONS_CHUNK - 1);
  return (uint64_t *)(chunk + (size_t)map * OUTHEAP_MARKER_MAP) + (address - chunk) / 512;
}

static inline uint64_t outheap_hashcons_notes_bit(uintptr_t address) { return (uint64_t)1 << address / 8 % 64; }

/* As if the marker had met a pointer to the cell. */
static inline void outheap_hashcons_notes_meet(outheap_hashcons_cell *c)
{
  uintptr_t a = (uintptr_t)(c + 1);
  uint64_t *w = outheap_hashcons_notes_word(a, outheap_hashcons_notes.current), bit = outheap_hashcons_notes_bit(a);
  if ((__atomic_load_n(w, __ATOMIC_RELAXED) & bit) == 0) (void)__atomic_fetch_or(w, bit, __ATOMIC_RELAXED);
}

static inline bool outheap_hashcons_notes_is_marked(outheap_hashcons_cell *c)
{
  uintptr_t a = (uintptr_t)c;
  return (*outheap_hashcons_notes_word(a, !outheap_hashcons_notes.current) & outheap_hashcons_notes_bit(a)) != 0;
}

static inline void outheap_hashcons_notes_mark(outheap_hashcons_cell *c)
{
  uintptr_t a = (uintptr_t)c;
  *outheap_hashcons_notes_word(a, !outheap_hashcons_notes.current) |= outheap_hashcons_notes_bit(a);
}

/* No pointer leads there, and none will. */
static inline bool outheap_hashcons_notes_is_dead(outheap_hashcons_cell *c)
{
  return outheap_hashcons_notes.phase == OUTHEAP_HASHCONS_SWEEP && !outheap_hashcons_notes_is_marked(c);
}

#endif
