/* SPDX-License-Identifier: MIT */
#include "hashcons_collect.h"
#include <region_runtime.h>
#include <caml/memory.h>
#include <caml/minor_gc.h>
#include <caml/misc.h>
#include <stdlib.h>

typedef outheap_hashcons_cell cell;
typedef struct outheap_hashcons_page page;
typedef struct outheap_hashcons_chunk chunk;

static struct outheap_hashcons_reach *const reach = &outheap_hashcons_reach;
static struct outheap_hashcons_memory *const memory = &outheap_hashcons_memory;

#ifdef OUTHEAP_HASHCONS_TINY /* for tests: collections that take many steps */
enum { WORK_PER_LOCK = 3, WORK_PER_SLICE = 5, WORK_PER_CELL = 1, EVERY_CYCLE = 1 };
#else
enum {
  WORK_PER_LOCK = 1000,  /* while the lock is held */
  WORK_PER_SLICE = 3000, /* at the end of the collector's slices, besides a share of all cells */
  WORK_PER_CELL = 64,    /* for each new cell: a collection (five for each cell) ends before a tenth of them is new */
  EVERY_CYCLE = 0        /* has a collection */
};
#endif
enum {
  PREFETCH_DISTANCE = 8, /* cells that are prefetched before they are visited */
  KEPT_PAGES = 16,       /* free pages that stay resident, besides an eighth */
  MAP_WORDS = OUTHEAP_HASHCONS_PAGE / 8 / 64 /* of a page */
};
#define SMALL_WORDS ((size_t)1 << 20) /* of cells: for fewer it is not worth while to hurry */
#define WORDS_PER_MINOR 32768          /* of cells, which are collected for one minor collection of the program */

struct outheap_hashcons_collect outheap_hashcons_collect;
static struct outheap_hashcons_collect *const counters = &outheap_hashcons_collect;

static struct { cell **at; size_t count, room; bool overflowed; } stack;
static struct { cell *at[PREFETCH_DISTANCE]; size_t begin, end; } queue; /* from the stack, being prefetched */
static struct { size_t chunk, page; bool again; } scan; /* again: for marked cells, after the stack has overflowed */
/* Words that were allocated since the collector was last told of them, and since a collection last began; words that
   the last collection left. */
static size_t untold, allocated, live;
static uintnat minors; /* minor collections when a collection last began */
static bool late;
static size_t forced;

/* --- marking ------------------------------------------------------------------------------------------------------ */

static void push(cell *c)
{
  if (stack.count == stack.room) {
    size_t room = stack.room == 0 ? 1024 : 2 * stack.room;
    cell **new = realloc(stack.at, room * sizeof *new);
    if (new == NULL) { /* the cell is found again by its mark */
      stack.overflowed = true;
      return;
    }
    stack.at = new;
    stack.room = room;
  }
  stack.at[stack.count++] = c;
}

/* Marks a cell that is not marked. Does not read the cell, which may be a cache miss. */
static inline void shade(cell *c)
{
  if (outheap_hashcons_mark_is_set(c)) return;
  outheap_hashcons_mark_set(c);
  push(c);
}

static inline void shade_at(uintptr_t a)
{
  cell *c = outheap_hashcons_memory_slot(a);
  if (c != NULL) shade(c);
}

static size_t words_of(cell *c) { return outheap_hashcons_memory_page((uintptr_t)c)->words; }

/* Marks what the fields of a cell lead to. */
static void visit(cell *c)
{
  if (!outheap_hashcons_cell_is_used(c)) return;
  for (uint64_t *at = c, *end = c + words_of(c); at < end && *at != 0; at += 1 + Wosize_hd(*at)) {
    if (Tag_hd(*at) >= No_scan_tag) continue;
    for (mlsize_t i = 1; i <= Wosize_hd(*at); i++) {
      uint64_t v = at[i];
      if ((v & 1) != 0 || !outheap_hashcons_memory_has(v) || v - (uintptr_t)c < (uintptr_t)end - (uintptr_t)c) continue;
      shade_at(v);
    }
  }
}

static bool is_closed(void) { return stack.count == 0 && queue.begin == queue.end; }

/* Visits one of the marked cells. Not to be called if all are visited. */
static void visit_next(void)
{
  for (; stack.count != 0 && queue.end - queue.begin < PREFETCH_DISTANCE; queue.end++) {
    cell *c = stack.at[--stack.count];
    __builtin_prefetch(c);
    queue.at[queue.end % PREFETCH_DISTANCE] = c;
  }
  visit(queue.at[queue.begin++ % PREFETCH_DISTANCE]);
}

/* A bit of the map is a reach bit, or a mark. */
static void bit_found(uintptr_t a)
{
  if (!scan.again) shade_at(a);
  else {
    cell *c = outheap_hashcons_memory_cell(a);
    if (c != NULL && outheap_hashcons_mark_is_set(c)) visit(c);
  }
}

/* These return the work that they did. */
static size_t scan_page(chunk *c, size_t number)
{
  page *p = &c->page[number];
  if (p->words == 0) return 1;
  uintptr_t start = (uintptr_t)c->base + OUTHEAP_HASHCONS_MAPS + number * OUTHEAP_HASHCONS_PAGE;
  uint64_t *map = outheap_hashcons_reach_word(start, !reach->current);
  size_t work = MAP_WORDS / 8;
  for (size_t i = 0; i < MAP_WORDS; i++)
    for (uint64_t w = map[i]; w != 0; w &= w - 1) {
      bit_found(start + (i * 64 + (size_t)__builtin_ctzll(w)) * 8);
      work++;
    }
  return work;
}

static void scan_from_start(bool again)
{
  scan.chunk = scan.page = 0;
  scan.again = again;
  outheap_hashcons_reach_enter(OUTHEAP_HASHCONS_SCAN);
}

static size_t scan_next(void)
{
  if (!is_closed()) {
    visit_next();
    return 1;
  }
  if (scan.chunk < memory->chunks) {
    chunk *c = memory->chunk[scan.chunk];
    if (scan.page < c->begun) return scan_page(c, scan.page++);
    scan.chunk++;
    scan.page = 0;
    return 1;
  }
  outheap_hashcons_reach_enter(OUTHEAP_HASHCONS_CLOSE);
  return 1;
}

static size_t close_next(void)
{
  if (!is_closed()) {
    visit_next();
    return 1;
  }
  if (stack.overflowed) {
    stack.overflowed = false;
    scan_from_start(true);
    return 1;
  }
  outheap_hashcons_table_sweep_begin();
  outheap_hashcons_reach_enter(OUTHEAP_HASHCONS_SWEEP);
  return 1;
}

/* --- freeing ------------------------------------------------------------------------------------------------------ */

static size_t sweep_next(size_t work)
{
  size_t done = outheap_hashcons_table_sweep(work);
  if (done != 0) return done;
  scan_from_start(false);
  outheap_hashcons_reach_enter(OUTHEAP_HASHCONS_CLEAR);
  return 1;
}

static size_t clear_next(void)
{
  if (scan.chunk < memory->chunks) {
    chunk *c = memory->chunk[scan.chunk];
    if (scan.page < c->begun) {
      char *start = c->base + OUTHEAP_HASHCONS_MAPS + scan.page++ * OUTHEAP_HASHCONS_PAGE;
      memset(outheap_hashcons_reach_word((uintptr_t)start, !reach->current), 0, MAP_WORDS * 8);
      return MAP_WORDS / 16;
    }
    scan.chunk++;
    scan.page = 0;
    return 1;
  }
  outheap_hashcons_memory_trim(KEPT_PAGES + memory->words / (OUTHEAP_HASHCONS_PAGE / 8) / 8);
  if (stack.room > 1 << 20) {
    free(stack.at);
    stack.at = NULL;
    stack.room = 0;
  }
  live = memory->words;
  counters->collections++;
  outheap_hashcons_reach_enter(OUTHEAP_HASHCONS_IDLE);
  return 1;
}

/* --- slices ------------------------------------------------------------------------------------------------------- */

/* Does a part of `work`, with the lock. Returns what is left of it; 0, too, if there is nothing to do. */
static size_t do_work(size_t work)
{
  for (size_t done = 0; done < WORK_PER_LOCK && work != 0;) {
    size_t n;
    switch (reach->phase) {
      case OUTHEAP_HASHCONS_SCAN: n = scan_next(); break;
      case OUTHEAP_HASHCONS_CLOSE: n = close_next(); break;
      case OUTHEAP_HASHCONS_SWEEP: n = sweep_next(WORK_PER_LOCK - done); break;
      case OUTHEAP_HASHCONS_CLEAR: n = clear_next(); break;
      default: return 0;
    }
    done += n;
    work = work < n ? 0 : work - n;
  }
  return work;
}

static bool is_idle(void) { return __atomic_load_n(&reach->phase, __ATOMIC_RELAXED) == OUTHEAP_HASHCONS_IDLE; }

void outheap_hashcons_collect_slice(size_t work)
{
  while (work != 0 && !is_idle()) {
    outheap_hashcons_lock_take();
    work = do_work(work);
    outheap_hashcons_lock_give();
  }
}

bool outheap_hashcons_collect_finish(void)
{
  if (is_idle()) return false;
  outheap_hashcons_collect_slice(SIZE_MAX);
  return true;
}

void outheap_hashcons_collect_touch(cell *c)
{
  outheap_hashcons_reach_set(c);
  switch (reach->phase) {
    case OUTHEAP_HASHCONS_SCAN:
    case OUTHEAP_HASHCONS_CLOSE: shade(c); break;
    case OUTHEAP_HASHCONS_SWEEP: outheap_hashcons_mark_set(c); break;
    default: break;
  }
}

void outheap_hashcons_collect_allocated(size_t words) { untold += words, allocated += words; }

void outheap_hashcons_collect_pace(size_t cells)
{
  outheap_hashcons_collect_slice(cells * WORK_PER_CELL);
  outheap_hashcons_lock_take();
  size_t words = untold, most = live < 3 * SMALL_WORDS ? SMALL_WORDS : live / 3;
  untold = 0;
  outheap_hashcons_lock_give();
  if (words != 0) outheap_region_pace(words, most);
}

/* --- the collector ------------------------------------------------------------------------------------------------ */

#if OUTHEAP_REGION_OCAML5
static uintnat minor_collections(void) { return atomic_load(&caml_minor_collections_count); }
#else
static uintnat minor_collections(void) { return 0; }
#endif

/* Is a collection worth its while? Major cycles are frequent if the heap is small, whatever the number of cells. */
static bool is_due(void)
{
  return EVERY_CYCLE || forced != 0 || memory->words < SMALL_WORDS / 16 || allocated > (live + SMALL_WORDS / 4) / 4 ||
         minor_collections() - minors > 8 + live / WORDS_PER_MINOR;
}

static void begin_if_due(void)
{
  outheap_hashcons_lock_take();
  if (reach->phase != OUTHEAP_HASHCONS_IDLE) {
    if (forced != 0 || allocated > live + SMALL_WORDS) __atomic_store_n(&late, true, __ATOMIC_RELAXED);
  }
  else if (memory->chunks != 0 && is_due()) {
    allocated = 0;
    minors = minor_collections();
    reach->current = !reach->current;
    for (size_t i = 0; i < memory->chunks; i++)
      outheap_marker_use_map(memory->chunk[i]->base, OUTHEAP_HASHCONS_CHUNK, reach->current);
    scan_from_start(false);
  }
  outheap_hashcons_lock_give();
}

static void finish_if_late(void)
{
  if (!__atomic_exchange_n(&late, false, __ATOMIC_ACQ_REL)) return;
  outheap_hashcons_lock_take();
  counters->late++;
  outheap_hashcons_lock_give();
  (void)outheap_hashcons_collect_finish();
}

void outheap_hashcons_collect_force(bool on)
{
  outheap_hashcons_lock_take();
  if (on) forced++;
  else forced--;
  outheap_hashcons_lock_give();
}

#if OUTHEAP_REGION_OCAML5
static caml_timing_hook _Atomic next_hook;

static void end_of_slice(void)
{
  caml_timing_hook next = next_hook;
  if (!is_idle()) {
    outheap_hashcons_lock_take();
    size_t work = WORK_PER_SLICE + memory->cells / 32;
    outheap_hashcons_lock_give();
    outheap_hashcons_collect_slice(work);
  }
  if (next != NULL) next();
}
#endif

void outheap_hashcons_collect_start(void)
{
  static struct outheap_marker_cycle c;
  c.cycle = begin_if_due, c.cycled = finish_if_late;
  (void)outheap_marker_on_cycle(&c);
#if OUTHEAP_REGION_OCAML5
  next_hook = atomic_load(&caml_major_slice_end_hook);
  atomic_store(&caml_major_slice_end_hook, end_of_slice);
#endif
}
