/* SPDX-License-Identifier: MIT */
/* Pools of cells outside the heap. A cell is a block with a header, which the collector neither marks nor moves; all
   cells of a pool have room for equally many fields. A pool's memory never serves another pool, nor goes anywhere else:
   a pointer to a cell that was freed leads to a cell of the same pool, to what such a cell held, or, where memory was
   given back, to zeroes, which are no value: whoever follows one ends with a fault.

   None of these functions calls OCaml or runs the collector. */
#ifndef OUTHEAP_LINEAR_POOL_H
#define OUTHEAP_LINEAR_POOL_H

#include "linear_lock.h"
#include "linear_page.h"

#define OUTHEAP_LINEAR_MOST 62                /* fields of a cell, at most */

/* Where a pool has the links of the free cells of a page: beside the cells, for cells that are borrowed, and for groups
   whose cells are taken; or in the first four bytes of the free cell. */
enum outheap_linear_links { OUTHEAP_LINEAR_BESIDE, OUTHEAP_LINEAR_WITHIN };

/* What a cell of a pool with links BESIDE is. A cell in use is LIVE, or TAKEN + the number of this taking when its
   owner wants to write it anew, or BUSY while it is written or freed; any lower state belongs to a free one, and is its
   link: the number after that of the next free cell of the page, 0 for the last. */
#define OUTHEAP_LINEAR_LIVE 0xFFFFFFFFu
#define OUTHEAP_LINEAR_BUSY 0xFFFFFFFEu
#define OUTHEAP_LINEAR_TAKEN 0x80000000u
#define OUTHEAP_LINEAR_TAKINGS ((uint32_t)1 << 17) /* numbers of takings; after so many of a page they come again */

/* used: the sum of the pages'; paced <= used: cells of which the collector's pace knows; empty <= pages; current is in
   no list */
struct outheap_linear_pool {
  struct outheap_linear_lock lock; /* for all that changes */
  enum outheap_linear_links links;
  uint32_t fields;     /* room of a cell */
  uint32_t bytes;      /* of a cell, with its header */
  uint32_t cells;      /* of a page */
  uint32_t first;      /* where the first one begins */
  uint64_t reciprocal; /* offset / bytes = offset * reciprocal >> 40 */
  struct outheap_linear_page *current, *lists[4];
  size_t used, paced, pages, empty;
  struct outheap_linear_group *group; /* or NULL */
  struct outheap_linear_pool *next;   /* of its group */
  uint64_t shape;                     /* of all cells of a pool of a group; for strings also which of the pools it is */
};

/* Pools for the constructors of one type, one for each shape: fields * 256 + tag. Grows only. */
struct outheap_linear_group { struct outheap_linear_pool *pools; enum outheap_linear_links links; };

/* Finds or makes the pool for cells of this shape, with so many fields. Returns NULL if there is no memory. */
struct outheap_linear_pool *outheap_linear_group_pool(struct outheap_linear_group *, mlsize_t fields, uint64_t shape);
static inline uint64_t outheap_linear_shape(mlsize_t fields, tag_t tag) { return (uint64_t)fields << 8 | tag; }

/* Makes a pool, which stays until the program ends. 1 <= fields <= OUTHEAP_LINEAR_MOST. Links WITHIN are for cells that
   nobody reads when they are free, or whose first four bytes may have any contents. Returns NULL if there is no memory.
   */
struct outheap_linear_pool *outheap_linear_pool_new(uint32_t fields, enum outheap_linear_links);

/* Takes a cell; its header says `words` fields, which are for the caller to fill before anybody else sees it. Returns 0
   if there is no memory, or, unless it may `grow`, if the pool would have to take another page. Cost: some ns; 5 more
   for the lock where several domains run. */
value outheap_linear_cell_new(struct outheap_linear_pool *, mlsize_t words, tag_t tag, bool grow);

/* The same for a cell that was freed, of a page that is not the current one, so that those of the pool's own are left
   to it. Returns 0 if there is none. */
value outheap_linear_cell_freed(struct outheap_linear_pool *, mlsize_t words, tag_t tag);

/* Frees a cell of this pool that is in use. */
void outheap_linear_cell_free(struct outheap_linear_pool *, value cell);

/* Frees a chain of cells, up to the first immediate in the field `link`; or a tree, whose branches are these two fields
   (its depth is that of the C stack: of balanced trees). */
void outheap_linear_cell_free_chain(struct outheap_linear_pool *, value cell, mlsize_t link);
void outheap_linear_cell_free_tree(struct outheap_linear_pool *, value cell, mlsize_t left, mlsize_t right);

/* The state of the cell of this group, which has links BESIDE, at `v`, any value; NULL: it is none. Several domains
   change it, atomically. */
uint32_t *outheap_linear_cell_state(struct outheap_linear_group *, value v);
/* The same for what is, or was, a cell of that group, such as a token's: a state is always there, though its memory may
   have been given back, and is one of a free cell then. */
uint32_t *outheap_linear_cell_state_known(value cell);
/* A number for a taking of a cell of a group: the page's last TAKINGS of them differ. */
uint32_t outheap_linear_cell_taking(value cell);
/* The pool of a cell. */
struct outheap_linear_pool *outheap_linear_cell_pool(value cell);

/* Cells in use; bytes of its pages. */
size_t outheap_linear_pool_used(struct outheap_linear_pool *);
size_t outheap_linear_pool_bytes(struct outheap_linear_pool *);

/* From now on the fields of freed cells are overwritten with pointers to memory that cannot be read. */
void outheap_linear_poison_set(bool);

/* Sets pages aside of which half or less is in use, if their cells fit into fewer pages. Are there such pages? With the
   stock runtime there are none. Cost: linear in the pages. */
bool outheap_linear_pool_thin(struct outheap_linear_pool *);

/* Moves a cell out of a page that is set aside: its new place, or the old one if it stays. Of a cell that is owned, by
   one pointer that is known. */
value outheap_linear_cell_move(value cell);

/* Gives memory back: the pages of a pool without a cell in use, all of them. Returns bytes. Pages that are still set
   aside are used again. With the stock runtime, whose collector looks at headers, nothing is given back. */
size_t outheap_linear_pool_trim(struct outheap_linear_pool *);

/* Checks the invariants; NULL, or which one does not hold. Cost: linear in the pool. */
char const *outheap_linear_pool_check(struct outheap_linear_pool *);

/* Addresses, which stay where they are, as immediates of OCaml: the lowest bit is set. */
static inline value outheap_linear_immediate(void const *p) { return (value)p | 1; }
static inline void *outheap_linear_address(value v) { return (void *)(v & ~(value)1); }

#endif
