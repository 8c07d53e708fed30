/* SPDX-License-Identifier: MIT */
#include "hashcons_collect.h"
#include "hashcons_lock.h"
#include <region_pace.h>
#include <caml/memory.h>
#include <caml/minor_gc.h>
#include <caml/misc.h>
#include <stdlib.h>

typedef outheap_hashcons_cell cell;
typedef struct outheap_hashcons_page page;
typedef struct outheap_hashcons_chunk chunk;

#define notes outheap_hashcons_notes
#define memory outheap_hashcons_memory

#ifdef OUTHEAP_HASHCONS_TINY /* tests: collections that take long */
enum { AT_ONCE = 3, AT_SLICE = 5, FOR_CELL = 1, ALWAYS = 1 };
#else
enum {
  AT_ONCE = 1000,     /* work with the lock held */
  AT_SLICE = 3000,    /* at the end of the collector's slices, besides a share of all cells */
  FOR_CELL = 64,      /* for each new cell: a collection (five for each cell) is done before a tenth of them is new */
  ALWAYS = 0          /* a collection in each cycle of the collector */
};
#endif
enum {
  AHEAD = 8,          /* cells that are fetched from memory before they are looked at */
  KEPT_PAGES = 16,    /* free pages that stay resident, besides an eighth */
  MAP_WORDS = OUTHEAP_HASHCONS_PAGE / 8 / 64 /* of a page */
};
#define LITTLE ((size_t)1 << 20) /* words of cells for which it is not worth while to hurry */
#define WORDS_OF_MINOR 32768     /* words of cells that may be collected for one minor collection of the program */

struct outheap_hashcons_collect outheap_hashcons_collect;
#define counters outheap_hashcons_collect

static struct { cell **at; size_t count, room; bool overflowed; } stack;
static struct { cell *at[AHEAD]; size_t begin, end; } queue; /* what was on the stack, and is being fetched */
static struct { size_t chunk, page; bool again; } scan; /* again: looks for marked cells, after an overflow */
/* Words: since the collector last heard of it; since a collection last began; that the last one left. */
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
    if (new == NULL) { /* it is found again by its mark */
      stack.overflowed = true;
      return;
    }
    stack.at = new;
    stack.room = room;
  }
  stack.at[stack.count++] = c;
}

/* Does not look at the cell, which may be a cache miss. */
static inline void shade(cell *c)
{
  if (outheap_hashcons_notes_is_marked(c)) return;
  outheap_hashcons_notes_mark(c);
  push(c);
}

static inline void shade_at(uintptr_t a)
{
  cell *c = outheap_hashcons_memory_place(a);
  if (c != NULL) shade(c);
}

static size_t words_of(cell *c) { return outheap_hashcons_memory_page((uintptr_t)c)->words; }

/* Marks what the fields of a cell lead to. */
static void visit(cell *c)
{
  if (!outheap_hashcons_memory_is_used(c)) return;
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

/* Visits one of the marked cells. Not if all are visited. */
static void visit_next(void)
{
  for (; stack.count != 0 && queue.end - queue.begin < AHEAD; queue.end++) {
    cell *c = stack.at[--stack.count];
    __builtin_prefetch(c);
    queue.at[queue.end % AHEAD] = c;
  }
  visit(queue.at[queue.begin++ % AHEAD]);
}

/* A bit of the map: a note, or a mark. */
static void bit_found(uintptr_t a)
{
  if (!scan.again) shade_at(a);
  else {
    cell *c = outheap_hashcons_memory_cell(a);
    if (c != NULL && outheap_hashcons_notes_is_marked(c)) visit(c);
  }
}

/* Result: the work. */
static size_t scan_page(chunk *c, size_t number)
{
  page *p = &c->page[number];
  if (p->words == 0) return 1;
  uintptr_t start = (uintptr_t)c->base + OUTHEAP_HASHCONS_MAPS + number * OUTHEAP_HASHCONS_PAGE;
  uint64_t *map = outheap_hashcons_notes_word(start, !notes.current);
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
  outheap_hashcons_notes_enter(OUTHEAP_HASHCONS_SCAN);
}

static size_t step_scan(void)
{
  if (!is_closed()) {
    visit_next();
    return 1;
  }
  if (scan.chunk < memory.chunks) {
    chunk *c = memory.chunk[scan.chunk];
    if (scan.page < c->begun) return scan_page(c, scan.page++);
    scan.chunk++;
    scan.page = 0;
    return 1;
  }
  outheap_hashcons_notes_enter(OUTHEAP_HASHCONS_CLOSE);
  return 1;
}

static size_t step_close(void)
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
  outheap_hashcons_notes_enter(OUTHEAP_HASHCONS_SWEEP);
  return 1;
}

/* --- freeing ------------------------------------------------------------------------------------------------------ */

static size_t step_sweep(size_t work)
{
  size_t done = outheap_hashcons_table_sweep(work);
  if (done != 0) return done;
  scan_from_start(false);
  outheap_hashcons_notes_enter(OUTHEAP_HASHCONS_CLEAR);
  return 1;
}

static size_t step_clear(void)
{
  if (scan.chunk < memory.chunks) {
    chunk *c = memory.chunk[scan.chunk];
    if (scan.page < c->begun) {
      char *start = c->base + OUTHEAP_HASHCONS_MAPS + scan.page++ * OUTHEAP_HASHCONS_PAGE;
      memset(outheap_hashcons_notes_word((uintptr_t)start, !notes.current), 0, MAP_WORDS * 8);
      return MAP_WORDS / 16;
    }
    scan.chunk++;
    scan.page = 0;
    return 1;
  }
  outheap_hashcons_memory_trim(KEPT_PAGES + memory.words / (OUTHEAP_HASHCONS_PAGE / 8) / 8);
  if (stack.room > 1 << 20) {
    free(stack.at);
    stack.at = NULL;
    stack.room = 0;
  }
  live = memory.words;
  counters.collections++;
  outheap_hashcons_notes_enter(OUTHEAP_HASHCONS_IDLE);
  return 1;
}

/* --- slices ------------------------------------------------------------------------------------------------------- */

/* With the lock, for a part of `work`. Result: what is left of it; 0 too if there is nothing to do. */
static size_t steps(size_t work)
{
  for (size_t done = 0; done < AT_ONCE && work != 0;) {
    size_t n;
    switch (notes.phase) {
      case OUTHEAP_HASHCONS_SCAN: n = step_scan(); break;
      case OUTHEAP_HASHCONS_CLOSE: n = step_close(); break;
      case OUTHEAP_HASHCONS_SWEEP: n = step_sweep(AT_ONCE - done); break;
      case OUTHEAP_HASHCONS_CLEAR: n = step_clear(); break;
      default: return 0;
    }
    done += n;
    work = work < n ? 0 : work - n;
  }
  return work;
}

static bool is_idle(void) { return __atomic_load_n(&notes.phase, __ATOMIC_RELAXED) == OUTHEAP_HASHCONS_IDLE; }

void outheap_hashcons_collect_slice(size_t work)
{
  while (work != 0 && !is_idle()) {
    outheap_hashcons_lock_take();
    work = steps(work);
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
  outheap_hashcons_notes_meet(c);
  switch (notes.phase) {
    case OUTHEAP_HASHCONS_SCAN:
    case OUTHEAP_HASHCONS_CLOSE: shade(c); break;
    case OUTHEAP_HASHCONS_SWEEP: outheap_hashcons_notes_mark(c); break;
    default: break;
  }
}

void outheap_hashcons_collect_allocated(size_t words) { untold += words, allocated += words; }

void outheap_hashcons_collect_pace(size_t cells)
{
  outheap_hashcons_collect_slice(cells * FOR_CELL);
  outheap_hashcons_lock_take();
  size_t words = untold, most = live < 3 * LITTLE ? LITTLE : live / 3;
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

/* Is a collection worth its while? Cycles of the collector are as frequent as the heap is small, whatever the number of
   cells. */
static bool is_due(void)
{
  return ALWAYS || forced != 0 || memory.words < LITTLE / 16 || allocated > (live + LITTLE / 4) / 4 ||
         minor_collections() - minors > 8 + live / WORDS_OF_MINOR;
}

static void cycle(void)
{
  outheap_hashcons_lock_take();
  if (notes.phase != OUTHEAP_HASHCONS_IDLE) {
    if (forced != 0 || allocated > live + LITTLE) __atomic_store_n(&late, true, __ATOMIC_RELAXED);
  }
  else if (memory.chunks != 0 && is_due()) {
    allocated = 0;
    minors = minor_collections();
    notes.current = !notes.current;
    for (size_t i = 0; i < memory.chunks; i++)
      outheap_marker_use_map(memory.chunk[i]->base, OUTHEAP_HASHCONS_CHUNK, notes.current);
    scan_from_start(false);
  }
  outheap_hashcons_lock_give();
}

static void cycled(void)
{
  if (!__atomic_exchange_n(&late, false, __ATOMIC_ACQ_REL)) return;
  outheap_hashcons_lock_take();
  counters.late++;
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
    size_t work = AT_SLICE + memory.cells / 32;
    outheap_hashcons_lock_give();
    outheap_hashcons_collect_slice(work);
  }
  if (next != NULL) next();
}
#endif

void outheap_hashcons_collect_start(void)
{
  static struct outheap_marker_cycle c;
  c.cycle = cycle, c.cycled = cycled;
  (void)outheap_marker_on_cycle(&c);
#if OUTHEAP_REGION_OCAML5
  next_hook = atomic_load(&caml_major_slice_end_hook);
  atomic_store(&caml_major_slice_end_hook, end_of_slice);
#endif
}
