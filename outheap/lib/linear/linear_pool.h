/* SPDX-License-Identifier: MIT */
/* Pools of cells outside the heap. A cell is a block with a header, which the collector neither marks nor moves; all
   cells of a pool have room for equally many fields. A pool's memory never serves another pool, nor goes anywhere else:
   a pointer to a cell that was freed leads to a cell of the same pool, to what such a cell held, or, where memory was
   given back, to zeroes, which are no value: whoever follows one ends with a fault.

   Locks: each pool has one, and there is one for what all share; no function holds one when it returns, or takes a
   second one while it has a pool's. Callers have OCaml's lock (in OCaml 5: that of their domain), so where one domain
   runs, locks and atomic exchanges are left out: outheap_linear_alone. None of these functions calls OCaml or runs the
   collector. */
#ifndef OUTHEAP_LINEAR_POOL_H
#define OUTHEAP_LINEAR_POOL_H

#include "region_base.h"
#if OCAML_VERSION >= 50000
#include <caml/domain.h>
#endif

#define OUTHEAP_LINEAR_PAGE OUTHEAP_REGION_CELLS /* bytes of a page of cells, aligned */
#define OUTHEAP_LINEAR_MOST 62                /* fields of a cell, at most */

/* Does no other domain run, until the caller gives its lock away? A domain counts from when it has its lock first, and
   until it has ended; another one cannot begin while the caller has the lock. What domains that have ended did is seen.
   Cost: a load. */
static inline bool outheap_linear_alone(void)
{
#if OCAML_VERSION >= 50000
  return caml_domain_alone();
#else
  return true;
#endif
}

/* For some instructions, or a system call. */
struct outheap_linear_lock { bool held; struct outheap_linear_lock *next; /* of all */ };

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

enum outheap_linear_list {
  OUTHEAP_LINEAR_FULL,
  OUTHEAP_LINEAR_ROOM,
  OUTHEAP_LINEAR_EMPTY,
  OUTHEAP_LINEAR_ASIDE, /* few cells are in use, which are to move; no cell is taken here */
  OUTHEAP_LINEAR_CURRENT
};

/* used + length of the chain of free cells = begun <= cells of a page of this pool
   list == EMPTY implies used == 0; list == FULL equals used == cells, but for the current page */
struct outheap_linear_page {
  struct outheap_linear_pool *pool;
  struct outheap_linear_page *next, *previous; /* in its list */
  uint32_t free;                               /* the number of the first free cell, plus 1; 0: none */
  uint32_t begun;                              /* cells that have been in use since the page was empty */
  uint32_t used;
  uint32_t takings; /* of cells of the page, ever */
  uint8_t list; /* enum outheap_linear_list */
  bool purged;  /* empty, and its memory was given back */
  bool huge;    /* huge pages are advised here */
  bool split;   /* no more, since it was given back */
  uint32_t state[]; /* of a pool with links WITHIN: none */
};

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

/* Finds or makes the pool for cells of this shape. Returns NULL if there is no memory. */
struct outheap_linear_pool *outheap_linear_group_pool(struct outheap_linear_group *, mlsize_t fields, tag_t tag);

/* Makes a pool, which stays until the program ends. 1 <= fields <= OUTHEAP_LINEAR_MOST. Links WITHIN are for cells that
   nobody reads when they are free, or whose first four bytes may have any contents. Returns NULL if there is no memory.
   */
struct outheap_linear_pool *outheap_linear_pool_new(uint32_t fields, enum outheap_linear_links);

/* Takes a cell; its header says `words` fields, which are for the caller to fill before anybody else sees it. Returns 0
   if there is no memory. Cost: some ns; 5 more for the lock where several domains run. */
value outheap_linear_cell_new(struct outheap_linear_pool *, mlsize_t words, tag_t tag);

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

/* Installs the handlers for fork, which take all locks, so that none is held in the child process. Once. */
void outheap_linear_lock_start(void);
/* The lock for what all share. */
void outheap_linear_lock_take(void);
void outheap_linear_lock_give(void);

/* --- texts ---------------------------------------------------------------------------------------------------------
   Strings in cells: of one group for all, with a pool for each of some sizes; where several domains run, with up to
   four. Where a pool would have to grow, a string goes into a cell of one of the next two sizes that was freed, if
   there is one. */

#define OUTHEAP_LINEAR_TEXT ((size_t)OUTHEAP_LINEAR_MOST * 8 - 1) /* bytes, at most */

extern struct outheap_linear_group outheap_linear_texts;

/* Copies a string of OCaml, of at most that length. Returns 0 if there is no memory. */
value outheap_linear_text_new(value string);

/* --- numbers of slots ------------------------------------------------------------------------------------------------
   Slots are numbered from 0; those that were given back are taken first. */

/* free_count <= room; every number is below `begun`, and in `free` at most once */
struct outheap_linear_slots { struct outheap_linear_lock lock; uint32_t *free; size_t free_count, room, begun; };

struct outheap_linear_slots *outheap_linear_slots_new(void);
/* Returns a number, or -1 if there is no memory or there are 2^32 - 2 of them. */
intnat outheap_linear_slots_take(struct outheap_linear_slots *);
void outheap_linear_slots_give(struct outheap_linear_slots *, uint32_t number);

#endif
