/* SPDX-License-Identifier: MIT */
/* Pages of cells: the memory of pools. */
#ifndef OUTHEAP_LINEAR_PAGE_H
#define OUTHEAP_LINEAR_PAGE_H

#include "region_base.h"
#include "region_runtime.h"

#define OUTHEAP_LINEAR_PAGE OUTHEAP_REGION_CELLS /* bytes of a page of cells, aligned */

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

/* A page of zeroes, of which the runtime knows that it holds values; not of cells yet. NULL: there is no memory. */
char *outheap_linear_page_map(void);

/* A new page of cells. `many`: the pool has so many that it gets huge pages. NULL: there is no memory. */
struct outheap_linear_page *outheap_linear_page_new(bool many);

/* Gives the memory of an empty page back, but for its record; returns bytes. It is to be prepared before it is used
   again. */
size_t outheap_linear_page_purge(struct outheap_linear_page *);
void outheap_linear_page_prepare(struct outheap_linear_page *, bool many);

/* Can that be? The stock runtime's marker reads the header behind a pointer that is stale, so it must stay one. */
bool outheap_linear_page_can_purge(void);

#endif
