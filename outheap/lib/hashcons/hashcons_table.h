/* SPDX-License-Identifier: MIT */
/* Tables of cells: open addressing, linear probing. A slot is 0 (never used), 1 (a tombstone: its cell is gone), or the
   address of a cell with 16 bits of its hash above. Cells whose table was dropped or cleared stay in it until they are
   unreachable: the table is *abandoned*, is never looked up, and ends with its last cell.

     3 (used + tombstones) <= 2 * 2^log      used: slots with cells, dead ones that were not swept included
     at least one slot is 0                  where a search ends
     newest >= the tag of each cell          tags grow: a cell that comes later has a larger one
     epoch: no other table has it, and this one has another whenever cells change places
     cells with the same hash keep their order when they change places

   The caller of any function has the lock. */
#ifndef OUTHEAP_HASHCONS_TABLE_H
#define OUTHEAP_HASHCONS_TABLE_H

#include "hashcons_memory.h"

enum { OUTHEAP_HASHCONS_TABLE_MIN_LOG = 3 }; /* of `log` */

struct outheap_hashcons_table {
  struct outheap_hashcons_table *next; /* of all tables */
  uint64_t *slots;
  unsigned log;
  size_t used, tombstones;
  size_t swept; /* slots, in the phase SWEEP, if it has come to this table; SIZE_MAX: all */
  intnat epoch; /* from 1 */
  value newest; /* a tag, as in a cell */
  bool abandoned;
  uint64_t first[1 << OUTHEAP_HASHCONS_TABLE_MIN_LOG]; /* the slots, at first */
};

extern struct outheap_hashcons_table *outheap_hashcons_table_all;

static inline outheap_hashcons_cell *outheap_hashcons_table_cell_of(uint64_t slot)
{
  return (outheap_hashcons_cell *)(uintptr_t)(slot & (OUTHEAP_REGION_ADDRESSES - 1));
}
static inline bool outheap_hashcons_table_holds(uint64_t slot) { return slot > 1; }

/* Makes a table for about so many cells, in the list of all. Returns NULL if there is no memory. */
struct outheap_hashcons_table *outheap_hashcons_table_new(size_t cells);

/* Finds the first cell with that hash that is not dead; NULL: there is none. `hkey` is what the cell holds. Cost: a
   cache miss for the slot and one for the cell. */
outheap_hashcons_cell *outheap_hashcons_table_find(struct outheap_hashcons_table const *, value hkey);

/* A search for all cells with one hash. Between its steps the lock is free: cells come and go, and the table may grow,
   shrink, or be another one. It makes passes over the slots from the hash's home on:

     a pass looks for the cells with newer < tag <= since; what comes after the pass has begun has a larger tag
     at, while the table has this epoch: the slot where the pass goes on; what it looks for lies there or further on,
     or was given out by it
     cells with tag <= newer were given out by former passes, or are dead, or belong to a table that was cleared

   The first pass is over all cells. Cells that come meanwhile may lie before `at`, in place of tombstones; they have
   tags above `since`, and another pass is for them alone. Cells that go leave tombstones. When cells change places,
   they keep their order, so the pass goes on behind the cell that it gave out last; that one is in use, since the
   caller has it. If it is not in the table, this is another table, since the former one was cleared: all its cells came
   later. Each cell is given out once, so a search ends, whatever others do, unless they make cells with this hash
   faster than the caller compares them.

   With all fields 0 it is a search of which outheap_hashcons_table_find gave the first cell. */
struct outheap_hashcons_table_search { intnat epoch; size_t at; value newer, since; };

/* Finds the next cell with that hash that is not dead; `last`: the one before. Returns NULL if there is none: while the
   lock is held, the table has no cell with that hash that was not given out. Cost: each slot from one to the other;
   each slot from the hash's home on, if cells came or changed places since the last step. */
outheap_hashcons_cell *outheap_hashcons_table_next(struct outheap_hashcons_table const *, value hkey,
                                                   struct outheap_hashcons_table_search *, outheap_hashcons_cell *last);

/* Ensures that there is room for one cell more. Returns false if there is no memory. Cost: constant on average; the
   whole table where it grows. */
bool outheap_hashcons_table_reserve(struct outheap_hashcons_table *);
/* Adds a filled cell; there is room. */
void outheap_hashcons_table_add(struct outheap_hashcons_table *, outheap_hashcons_cell *);

/* Begins the phase SWEEP: no table is swept. */
void outheap_hashcons_table_sweep_begin(void);
/* In the phase SWEEP: frees the dead cells among about so many next slots, of one table after the other. A table that
   is done shrinks if it is nearly empty, and an abandoned one without cells is freed. Tables that begin meanwhile may
   be left out: their cells are marked. Returns the number of slots and tables that it examined; 0: all are done. */
size_t outheap_hashcons_table_sweep(size_t slots);

/* Abandons a table: nobody will look it up any more. It may be freed at once, if it has no cells. */
void outheap_hashcons_table_abandon(struct outheap_hashcons_table *);

#endif
