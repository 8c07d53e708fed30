/* SPDX-License-Identifier: MIT */
#include "linear_pool.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct outheap_linear_pool pool;
typedef struct outheap_linear_page page;

#define PAGE OUTHEAP_LINEAR_PAGE
#define LIVE OUTHEAP_LINEAR_LIVE
#define TAKEN OUTHEAP_LINEAR_TAKEN
#define HUGE_FROM 4 /* pages of a pool; the first ones stay as they are */

/* --- lists of pages ----------------------------------------------------------------------------------------------- */

static void link_page(pool *p, page *g, enum outheap_linear_list list)
{
  g->list = (uint8_t)list;
  g->previous = NULL;
  g->next = p->lists[list];
  if (g->next != NULL) g->next->previous = g;
  p->lists[list] = g;
}

static void unlink_page(pool *p, page *g)
{
  if (g->next != NULL) g->next->previous = g->previous;
  if (g->previous != NULL) g->previous->next = g->next;
  else p->lists[g->list] = g->next;
}

/* Makes a page with room the current one. */
static bool change_page(pool *p)
{
  page *g = p->lists[OUTHEAP_LINEAR_ROOM];
  if (g != NULL) unlink_page(p, g);
  else if ((g = p->lists[OUTHEAP_LINEAR_EMPTY]) != NULL) {
    unlink_page(p, g);
    p->empty--;
  }
  else {
    g = outheap_linear_page_new(p->pages >= HUGE_FROM);
    if (g == NULL) return false;
    g->pool = p;
    p->pages++;
  }
  if (p->current != NULL) link_page(p, p->current, OUTHEAP_LINEAR_FULL);
  outheap_linear_page_prepare(g, p->pages >= HUGE_FROM);
  g->list = OUTHEAP_LINEAR_CURRENT;
  p->current = g;
  return true;
}

/* --- pools -------------------------------------------------------------------------------------------------------- */

static pool *make_pool(uint32_t fields, enum outheap_linear_links links)
{
  size_t beside = links == OUTHEAP_LINEAR_BESIDE ? sizeof(uint32_t) : 0;
  pool *p = outheap_linear_lock_lines(sizeof *p);
  if (p == NULL) return NULL;
  p->links = links;
  p->fields = fields;
  p->bytes = (fields + 1) * 8;
  p->cells = (uint32_t)((PAGE - sizeof(page) - 64) / (p->bytes + beside));
  p->first = (uint32_t)OUTHEAP_REGION_ROUND(sizeof(page) + p->cells * beside, (size_t)8);
  /* Exact for offsets below 2^21 and cells below 2^19 bytes: the error is below offset / 2^40 < 1 / bytes. */
  p->reciprocal = ((uint64_t)1 << 40) / p->bytes + 1;
  return p;
}

pool *outheap_linear_pool_new(uint32_t fields, enum outheap_linear_links links)
{
  pool *p = make_pool(fields, links);
  if (p == NULL) return NULL;
  outheap_linear_lock_take(NULL);
  outheap_linear_lock_announce(&p->lock);
  outheap_linear_lock_give(NULL);
  return p;
}

static pool *pool_of_shape(struct outheap_linear_group *g, uint64_t shape)
{
  /* Acquire: what was written to a pool before it was linked is seen. */
  pool *p = __atomic_load_n(&g->pools, __ATOMIC_ACQUIRE);
  while (p != NULL && p->shape != shape) p = p->next;
  return p;
}

/* Not inlined, so that finding a pool takes half the instructions. */
__attribute__((noinline)) static pool *new_pool(struct outheap_linear_group *g, mlsize_t fields, uint64_t shape)
{
  pool *new = make_pool((uint32_t)fields, g->links);
  if (new == NULL) return NULL;
  outheap_linear_lock_take(NULL);
  pool *p = pool_of_shape(g, shape);
  if (p == NULL) {
    p = new;
    outheap_linear_lock_announce(&p->lock);
    p->group = g;
    p->shape = shape;
    p->next = g->pools;
    __atomic_store_n(&g->pools, p, __ATOMIC_RELEASE);
  }
  outheap_linear_lock_give(NULL);
  if (p != new) free(new);
  return p;
}

pool *outheap_linear_group_pool(struct outheap_linear_group *g, mlsize_t fields, uint64_t shape)
{
  pool *p = pool_of_shape(g, shape);
  return p == NULL ? new_pool(g, fields, shape) : p;
}

static page *page_of(value cell) { return (page *)((uintptr_t)cell & ~(uintptr_t)(PAGE - 1)); }
static uint32_t number_of(pool *p, page *g, value cell)
{
  return (uint32_t)((((uintptr_t)cell - 8 - (uintptr_t)g - p->first) * p->reciprocal) >> 40);
}
static value cell_at(pool *p, page *g, uint32_t i) { return (value)((uintptr_t)g + p->first + i * p->bytes + 8); }

/* Relaxed: with the lock; who asks for the state of a cell that may be stale reads them without. */
static uint32_t state_get(page *g, uint32_t i) { return __atomic_load_n(&g->state[i], __ATOMIC_RELAXED); }
static void state_set(page *g, uint32_t i, uint32_t s) { __atomic_store_n(&g->state[i], s, __ATOMIC_RELAXED); }
static void begun_set(page *g, uint32_t n) { __atomic_store_n(&g->begun, n, __ATOMIC_RELAXED); }

/* Cells with links within are those of tables, or strings, which are of a group. */
static bool holds_strings(pool *p) { return p->links == OUTHEAP_LINEAR_WITHIN && p->group != NULL; }

/* The link of a free cell, with the lock. Relaxed: who has a stale string may read it. Beside it lies what the cell
   had, of which it makes no pointer: the number is odd, and of what is no string the word becomes an immediate. */
static uint32_t link_get(pool *p, page *g, uint32_t i)
{
  if (p->links == OUTHEAP_LINEAR_BESIDE) return state_get(g, i);
  return __atomic_load_n((uint32_t *)cell_at(p, g, i), __ATOMIC_RELAXED) >> 1;
}

static void link_set(pool *p, page *g, uint32_t i, uint32_t next)
{
  if (p->links == OUTHEAP_LINEAR_BESIDE) {
    state_set(g, i, next);
    return;
  }
  value cell = cell_at(p, g, i);
  if (!holds_strings(p)) Field(cell, 0) = Val_unit;
  __atomic_store_n((uint32_t *)cell, next << 1 | 1, __ATOMIC_RELAXED);
}

/* Whether freed cells are overwritten, and with what: a pointer to memory that cannot be read. */
static bool poison;
static value bad;

static value bad_word(void) { return __atomic_load_n(&bad, __ATOMIC_RELAXED); }

/* What a cell of a new page holds, and what poison left, become values: in bytecode stores go through the barrier,
   which looks at what was there before. Other contents stay: they are of the type that a stale pointer expects. */
static void make_values(pool *p, value cell)
{
  value word = bad_word();
  for (mlsize_t f = 0; f < p->fields; f++)
    if (Field(cell, f) == 0 || (Field(cell, f) == word && word != 0)) Field(cell, f) = Val_unit;
}

/* Takes a cell of a page that has one, with the lock. */
static value take_cell(pool *p, page *g, mlsize_t words, tag_t tag)
{
  uint32_t i;
  bool is_new = g->free == 0;
  if (is_new) {
    i = g->begun;
    begun_set(g, i + 1);
  }
  else {
    i = g->free - 1;
    g->free = link_get(p, g, i);
  }
  if (p->links == OUTHEAP_LINEAR_BESIDE) state_set(g, i, LIVE); /* the cell is not reachable yet */
  g->used++;
  p->used++;
  value cell = cell_at(p, g, i);
  if (is_new || bad_word() != 0) make_values(p, cell); /* it may not have been in use before */
  /* Relaxed: the marker of the stock runtime may read it; the fields follow, and the cell is not reachable yet. */
  __atomic_store_n((header_t *)cell - 1, outheap_region_block_header(words, tag), __ATOMIC_RELAXED);
  return cell;
}

#if OCAML_VERSION >= 50000 && OCAML_VERSION < 50400
#define PAGES_PER_CYCLE 2
#define SHARE_PER_CYCLE 8
#else
#define PAGES_PER_CYCLE 4
#define SHARE_PER_CYCLE 4
#endif

value outheap_linear_cell_new(pool *p, mlsize_t words, tag_t tag, bool grow)
{
  value cell = 0;
  size_t made = 0, most = 0;
  bool entered = outheap_linear_lock_enter(&p->lock);
  page *g = p->current;
  bool there = g != NULL && g->used != p->cells;
  bool has_pages = p->lists[OUTHEAP_LINEAR_ROOM] != NULL || p->lists[OUTHEAP_LINEAR_EMPTY] != NULL;
  if (!there && (grow || has_pages) && change_page(p)) {
    /* Owners that were forgotten may have cells to give back. What cycles of the collector free is used again; so while
       there come to be a quarter as many again as there were after that, a cycle is run. Four pages are for nothing. Up
       to OCaml 5.3 finalisers run some cycles later than from 5.4 on, so half of that is allowed. */
    g = p->current;
    there = true;
    made = p->used - p->paced;
    most = PAGES_PER_CYCLE * (size_t)p->cells + p->used / SHARE_PER_CYCLE;
    p->paced = p->used;
  }
  if (there) cell = take_cell(p, g, words, tag);
  outheap_linear_lock_leave(&p->lock, entered);
  if (made != 0) outheap_region_pace(made, most);
  return cell;
}

value outheap_linear_cell_freed(pool *p, mlsize_t words, tag_t tag)
{
  value cell = 0;
  bool entered = outheap_linear_lock_enter(&p->lock);
  page *g = p->lists[OUTHEAP_LINEAR_ROOM];
  if (g != NULL) {
    cell = take_cell(p, g, words, tag);
    if (g->used == p->cells) {
      unlink_page(p, g);
      link_page(p, g, OUTHEAP_LINEAR_FULL);
    }
  }
  outheap_linear_lock_leave(&p->lock, entered);
  return cell;
}

void outheap_linear_poison_set(bool on)
{
  if (on && bad_word() == 0) {
    char *p = outheap_linear_page_map(); /* where values are, for compare and hash follow no other pointer */
    if (p == NULL || mprotect(p, PAGE, PROT_NONE) != 0) return;
    __atomic_store_n(&bad, (value)(p + 64), __ATOMIC_RELAXED);
  }
  __atomic_store_n(&poison, on, __ATOMIC_RELEASE); /* whoever sees it sees `bad` */
}

/* With the lock. */
static void free_cell(pool *p, value cell)
{
  page *g = page_of(cell);
  uint32_t i = number_of(p, g, cell);
  if (__atomic_load_n(&poison, __ATOMIC_ACQUIRE)) {
    for (mlsize_t f = 0; f < p->fields; f++) Field(cell, f) = bad_word();
    /* Nobody follows what a string has; it loses its tag. Relaxed: as in take_cell. */
    if (holds_strings(p))
      __atomic_store_n((header_t *)cell - 1, outheap_region_block_header(Wosize_val(cell), Abstract_tag),
                       __ATOMIC_RELAXED);
  }
  if (--p->used < p->paced) p->paced = p->used;
  if (--g->used == 0) {
    g->free = 0;
    begun_set(g, 0);
    if (p->links == OUTHEAP_LINEAR_BESIDE) state_set(g, i, 0);
    if (g->list == OUTHEAP_LINEAR_CURRENT) return;
    bool aside = g->list == OUTHEAP_LINEAR_ASIDE; /* a trim is on its way, and counts what it gives back */
    unlink_page(p, g);
    link_page(p, g, OUTHEAP_LINEAR_EMPTY);
    p->empty++;
    /* The others are kept for what comes next. */
    if (!aside && p->empty > 1 + p->pages / 8) outheap_linear_page_purge(g);
    return;
  }
  link_set(p, g, i, g->free);
  g->free = i + 1;
  if (g->list == OUTHEAP_LINEAR_FULL) {
    unlink_page(p, g);
    link_page(p, g, OUTHEAP_LINEAR_ROOM);
  }
}

void outheap_linear_cell_free(pool *p, value cell)
{
  bool entered = outheap_linear_lock_enter(&p->lock);
  free_cell(p, cell);
  outheap_linear_lock_leave(&p->lock, entered);
}

void outheap_linear_cell_free_chain(pool *p, value cell, mlsize_t link)
{
  while (Is_block(cell)) {
    bool entered = outheap_linear_lock_enter(&p->lock); /* some cells at a time: others want the lock */
    for (int i = 0; i < 256 && Is_block(cell); i++) {
      value next = Field(cell, link);
      free_cell(p, cell);
      cell = next;
    }
    outheap_linear_lock_leave(&p->lock, entered);
  }
}

void outheap_linear_cell_free_tree(pool *p, value cell, mlsize_t left, mlsize_t right)
{
  while (Is_block(cell)) {
    outheap_linear_cell_free_tree(p, Field(cell, left), left, right);
    value next = Field(cell, right);
    outheap_linear_cell_free(p, cell);
    cell = next;
  }
}

uint32_t *outheap_linear_cell_state(struct outheap_linear_group *group, value v)
{
  if (!Is_block(v) || !outheap_region_marker_has_cells((uintptr_t)v)) return NULL;
  page *g = page_of(v);
  pool *p = g->pool;
  if (p->group != group || (uintptr_t)v < (uintptr_t)g + p->first + 8) return NULL;
  uint32_t i = number_of(p, g, v);
  /* Relaxed: another thread may take cells of the page; the state tells whether this one is in use. */
  return i < __atomic_load_n(&g->begun, __ATOMIC_RELAXED) && cell_at(p, g, i) == v ? &g->state[i] : NULL;
}

uint32_t *outheap_linear_cell_state_known(value cell)
{
  page *g = page_of(cell);
  return &g->state[number_of(g->pool, g, cell)];
}

uint32_t outheap_linear_cell_taking(value cell)
{
  uint32_t *n = &page_of(cell)->takings;
  /* Relaxed: who takes a cell sees the takings of those that had it before. */
  uint32_t before = outheap_linear_alone() ? (*n)++ : __atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
  return before % OUTHEAP_LINEAR_TAKINGS;
}

pool *outheap_linear_cell_pool(value cell) { return page_of(cell)->pool; }

static size_t asked(pool *p, size_t const *what)
{
  bool entered = outheap_linear_lock_enter(&p->lock);
  size_t n = *what;
  outheap_linear_lock_leave(&p->lock, entered);
  return n;
}

size_t outheap_linear_pool_used(pool *p) { return asked(p, &p->used); }
size_t outheap_linear_pool_bytes(pool *p) { return asked(p, &p->pages) * PAGE; }

static bool is_thin(pool *p, page *g) { return 2 * g->used <= p->cells; }

bool outheap_linear_pool_thin(pool *p)
{
  size_t thin = 0, used = 0, room = 0;
  if (!outheap_linear_page_can_purge()) return false;
  bool entered = outheap_linear_lock_enter(&p->lock);
  page *current = p->current;
  if (current != NULL && current->used != 0) { /* it is one of the others now */
    p->current = NULL;
    link_page(p, current, current->used == p->cells ? OUTHEAP_LINEAR_FULL : OUTHEAP_LINEAR_ROOM);
  }
  for (page *g = p->lists[OUTHEAP_LINEAR_ROOM]; g != NULL; g = g->next)
    if (is_thin(p, g)) {
      thin++;
      used += g->used;
    }
    else room += p->cells - g->used;
  size_t needed = used <= room ? 0 : (used - room + p->cells - 1) / p->cells;
  for (page *g = p->lists[OUTHEAP_LINEAR_ROOM], *next; g != NULL && thin > needed; g = next) {
    next = g->next;
    if (!is_thin(p, g)) continue;
    unlink_page(p, g);
    link_page(p, g, OUTHEAP_LINEAR_ASIDE);
  }
  bool found = p->lists[OUTHEAP_LINEAR_ASIDE] != NULL;
  outheap_linear_lock_leave(&p->lock, entered);
  return found;
}

value outheap_linear_cell_move(value cell)
{
  page *g = page_of(cell);
  pool *p = g->pool;
  bool entered = outheap_linear_lock_enter(&p->lock);
  bool leaves = g->list == OUTHEAP_LINEAR_ASIDE;
  if (leaves && ((p->current != NULL && p->current->used != p->cells) || change_page(p))) {
    value to = take_cell(p, p->current, Wosize_val(cell), Tag_val(cell));
    memcpy((void *)to, (void *)cell, Bosize_val(cell));
    free_cell(p, cell);
    cell = to;
  }
  outheap_linear_lock_leave(&p->lock, entered);
  return cell;
}

size_t outheap_linear_pool_trim(pool *p)
{
  size_t bytes = 0;
  bool entered = outheap_linear_lock_enter(&p->lock);
  for (page *g; (g = p->lists[OUTHEAP_LINEAR_ASIDE]) != NULL;) {
    unlink_page(p, g);
    link_page(p, g, OUTHEAP_LINEAR_ROOM);
  }
  page *current = p->current;
  if (current != NULL && current->used == 0 && outheap_linear_page_can_purge()) {
    p->current = NULL;
    link_page(p, current, OUTHEAP_LINEAR_EMPTY);
    p->empty++;
  }
  for (page *g = p->lists[OUTHEAP_LINEAR_EMPTY]; g != NULL; g = g->next) bytes += outheap_linear_page_purge(g);
  outheap_linear_lock_leave(&p->lock, entered);
  return bytes;
}

static char const *check_page(pool *p, page *g, enum outheap_linear_list list)
{
  uint32_t chain = 0, in_use = 0;
  if (g->pool != p || g->list != list) return "page in the wrong list";
  for (uint32_t i = g->free; i != 0; i = link_get(p, g, i - 1))
    if (i > g->begun || ++chain > g->begun) return "chain of free cells";
  if (p->links == OUTHEAP_LINEAR_BESIDE)
    for (uint32_t i = 0; i < g->begun; i++) in_use += state_get(g, i) >= TAKEN;
  else in_use = g->begun - chain;
  if (g->split && (!g->huge || list != OUTHEAP_LINEAR_EMPTY)) return "split page in use";
  if (g->used != in_use || g->used + chain != g->begun || g->begun > p->cells) return "count of a page";
  if (list == OUTHEAP_LINEAR_EMPTY && g->used != 0) return "empty page in use";
  if (list != OUTHEAP_LINEAR_CURRENT && list != OUTHEAP_LINEAR_FULL && g->used == p->cells)
    return "full page with room";
  if (list == OUTHEAP_LINEAR_FULL && g->used != p->cells) return "page with room that is full";
  return NULL;
}

char const *outheap_linear_pool_check(pool *p)
{
  char const *wrong = NULL;
  size_t used = 0, pages = 0, empty = 0;
  bool entered = outheap_linear_lock_enter(&p->lock);
  if (p->current != NULL) {
    wrong = check_page(p, p->current, OUTHEAP_LINEAR_CURRENT);
    used += p->current->used;
    pages++;
  }
  for (enum outheap_linear_list list = OUTHEAP_LINEAR_FULL; list <= OUTHEAP_LINEAR_ASIDE; list++)
    for (page *g = p->lists[list]; g != NULL && wrong == NULL; g = g->next) {
      wrong = check_page(p, g, list);
      used += g->used;
      pages++;
      empty += list == OUTHEAP_LINEAR_EMPTY;
    }
  if (wrong == NULL && (used != p->used || pages != p->pages || empty != p->empty)) wrong = "count of the pool";
  outheap_linear_lock_leave(&p->lock, entered);
  return wrong;
}
