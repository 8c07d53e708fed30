/* SPDX-License-Identifier: MIT */
/* Tables of cells: open addressing, linear probing. A slot is 0 (never used), 1 (was used), or the address of a cell
   with 16 bits of its hash above. Cells whose table was dropped or cleared stay in it until they are unreachable: an
   *orphan*, which is never looked up, and which ends with its last cell.

     3 (used + gone) <= 2 * 2^log      used: slots with cells, dead ones that were not swept included; gone: slots of 1
     the number of the stamp is new after each insertion, and whenever cells change their order

   All functions: with the lock. */
#ifndef OUTHEAP_HASHCONS_TABLE_H
#define OUTHEAP_HASHCONS_TABLE_H

#include "hashcons_memory.h"

struct outheap_hashcons_table {
  struct outheap_hashcons_table *next; /* of all tables */
  uint64_t *slots;
  unsigned log;
  size_t used, gone;
  size_t swept; /* slots; in the phase SWEEP */
  intnat stamp;
  bool orphan;
};

extern struct outheap_hashcons_table *outheap_hashcons_table_all;

static inline outheap_hashcons_cell *outheap_hashcons_table_cell_of(uint64_t slot)
{
  return (outheap_hashcons_cell *)(uintptr_t)(slot & (((uint64_t)1 << 48) - 1));
}
static inline bool outheap_hashcons_table_holds(uint64_t slot) { return slot > 1; }

/* A new table, for about so many cells, in the list of all. NULL: no memory. */
struct outheap_hashcons_table *outheap_hashcons_table_new(size_t cells);

/* The first cell with that hash that is not dead, or the next one after `after`, which is in the table; NULL: none.
   `hkey` as it is in the cell. Cost: a cache miss for the slot and one for the cell. */
outheap_hashcons_cell *outheap_hashcons_table_find(struct outheap_hashcons_table const *, value hkey,
                                                   outheap_hashcons_cell *after);

/* Room for one cell more. False: no memory. Cost: constant on average; the whole table where it grows. */
bool outheap_hashcons_table_reserve(struct outheap_hashcons_table *);
/* Adds a filled cell; there is room. */
void outheap_hashcons_table_add(struct outheap_hashcons_table *, outheap_hashcons_cell *);

/* In the phase SWEEP: frees the dead cells among the next slots. Result: slots that it looked at; 0: the table is done,
   and shrinks if it is nearly empty. */
size_t outheap_hashcons_table_sweep(struct outheap_hashcons_table *, size_t slots);

/* Nobody will look it up any more. It may be freed at once, if it has no cells. */
void outheap_hashcons_table_orphan(struct outheap_hashcons_table *);

/* Frees orphans without cells. Not in the phase SWEEP before its end. */
void outheap_hashcons_table_drop_empty(void);

#endif
