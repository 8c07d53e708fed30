/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "trap.h"
#include "base.h"
#include "clock.h"
#include "pool.h"
#include "settings.h"
#include "space.h"
#include "trap_left.h"
#include "trap_old.h"
#include "trap_places.h"
#include "trap_report.h"
#include <caml/domain_state.h>
#include <errno.h>
#include <sys/mman.h>

#define SMALL_PAGE ((uintptr_t)4096)
#define AHEAD ((uintptr_t)1 << 20)    /* made accessible at once */
#define READABLE ((uintptr_t)16 << 20) /* of what was left in a ring keeps its memory */
#define DOMAINS_MOST 4096

bool oh_trap_on;

/* Used by the domain's thread, or by what acts in its place. begin == 0: the domain has no ring. */
struct ring {
  uintptr_t begin, end;  /* the domain's part of the addresses */
  uintptr_t open;        /* accessible from here to `top` */
  uintptr_t top;         /* the end of the minor heap */
  uintptr_t purged;      /* what was left above it has no memory */
  uintptr_t low;         /* how far the minor heap was used when the collection began; 0: none has begun */
  size_t since_slice;    /* bytes used since marking last had a reason */
  bool forced;           /* the trap has asked for the next collection, */
  uint64_t asked;        /* at this time, with other domains; 0: alone; */
  struct oh_trap_left_reason reason; /* for this reason */
  uintnat reserved;      /* which range of addresses it belongs to */
};
static struct ring rings[DOMAINS_MOST];
static uintnat reservations;

static uintnat forced;           /* collections that the trap asked for */
static uintnat cycle_at;         /* of them: when the next major cycle is due */
static uintnat live_words;
static void (*tell_moved)(caml_domain_state *);

/* --- events ------------------------------------------------------------------------------------------------------ */

/* How many events until the next collection: geometrically distributed, so that a value can live through some events
   and become stale at the next one. Each thread has its own numbers, from the seed. */
static long next_distance(void)
{
  static __thread uint64_t state;
  static uint64_t threads;
  uint64_t every = oh_settings.check.every;
  if (every <= 1) return 1;
  if (state == 0) {
    uint64_t thread = oh_fetch_add_relaxed(&threads, 1);
    state = (oh_settings.check.seed + 1) * 0x9e3779b97f4a7c15u + thread * 2 + 1;
  }
  for (long n = 1;; n++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    if (state % every == 0) return n;
  }
}

/* With other domains a collection stops all of them, and takes as long as the system needs to let each of them run. So
   a budget of time takes the place of the number of events: what the trap asks for gets four fifths of the
   time. */
static uint64_t resting; /* until then */

static bool is_too_soon(void) { return !caml_domain_alone() && oh_clock_of_machine() < oh_load_relaxed(&resting); }

void oh_trap_spent(uint64_t began)
{
  uint64_t now = oh_clock_of_machine();
  oh_store_relaxed(&resting, now + (now - began) / 4);
}

void oh_trap_event(enum oh_trap_left_cause cause)
{
  static __thread long countdown;
  caml_domain_state *d = Caml_state_opt;
  if (d == NULL) return;
  oh_trap_report_frames(d);
  if (--countdown > 0) return;
  bool first = countdown < 0;
  countdown = next_distance();
  if (first || d->young_ptr == d->young_end || is_too_soon()) return; /* an empty heap leaves nothing */
  struct ring *r = &rings[d->id];
  oh_fetch_add_relaxed(&forced, 1);
  r->forced = true;
  r->asked = caml_domain_alone() ? 0 : oh_clock_of_machine();
  r->reason.cause = cause;
  r->reason.depth = oh_trap_places_stack(r->reason.frames, OH_TRAP_FRAMES);
  caml_request_minor_gc();
}

static __thread int errno_before;
void oh_trap_note_errno(void) { errno_before = errno; }
void oh_trap_check_errno(int now)
{
  if (now == EFAULT && errno_before != EFAULT) oh_trap_report_refused();
}

void oh_trap_fill(value *fields, size_t from, size_t to, bool old)
{
  value nowhere = (value)(old ? oh_trap_report_nowhere_old : oh_trap_report_nowhere_young);
  if (nowhere == 0) return;
  for (size_t i = from; i < to; i++) fields[i] = nowhere;
}

bool oh_trap_is_forced(caml_domain_state *d)
{
  struct ring *r = &rings[d->id];
  return oh_trap_on && r->forced && r->since_slice < Bsize_wsize(d->minor_heap_wsz) / 2;
}

/* A cycle costs about as much as one forced collection for each 512 live words. So at least half of what the trap costs
   is minor collections, however large the heap is. */
bool oh_trap_cycle_is_due(void)
{
  uintnat now = oh_load_relaxed(&forced), due = oh_load_relaxed(&cycle_at), every = oh_settings.check.cycle;
  if (every == 0 || now < due) return false;
  uintnat cost = oh_load_relaxed(&live_words) / 512;
  return oh_cas_seq_cst(&cycle_at, &due, now + (cost > every ? cost : every));
}

static uintnat count_forced(void) { return oh_load_relaxed(&forced); }

/* --- minor heaps ------------------------------------------------------------------------------------------------- */

uintnat oh_trap_start(uintnat most, void (*moved)(caml_domain_state *))
{
  tell_moved = moved;
  if (oh_settings.check.off || oh_trap_on) return most;
  size_t bytes = oh_settings.check.ring;
  if (bytes < Bsize_wsize(most) * 4) bytes = Bsize_wsize(most) * 4;
  oh_trap_on = true;
  oh_settings.minor_adaptive = false;
  cycle_at = oh_settings.check.cycle;
  char *page = oh_space_alloc(OH_SPACE_BLOCKS, OH_PAGE, false, NULL);
  if (page != NULL) {
    oh_trap_left_protect((uintptr_t)page, (uintptr_t)page + OH_PAGE, PROT_NONE);
    oh_trap_report_nowhere_old = (uintptr_t)page + OH_PAGE / 2;
  }
  oh_trap_report_start(count_forced);
  return Wsize_bsize(OH_ROUND_UP(bytes, OH_PAGE));
}

void oh_trap_reserved(void) { reservations++; }

uintptr_t oh_trap_commit(int domain, uintptr_t begin, uintptr_t end, size_t bytes)
{
  struct ring *r = &rings[domain];
  if (r->begin == 0 || r->reserved != reservations) {
    if (!oh_space_commit(OH_SPACE_YOUNG, (void *)begin, end - begin)) return 0;
    oh_trap_left_protect(begin, end, PROT_NONE);
    *r = (struct ring){ .begin = begin, .end = end, .top = end, .purged = end, .reserved = reservations };
    oh_trap_report_nowhere_young = begin + SMALL_PAGE / 2; /* the bottom page of a ring is never reached */
  }
  /* Below what was left; the bottom page stays inaccessible. */
  if (r->top - r->begin < bytes + 2 * SMALL_PAGE) {
    (void)madvise((void *)r->begin, r->end - r->begin, MADV_DONTNEED);
    r->top = r->purged = r->end;
  }
  r->open = r->top - bytes;
  r->low = 0;
  oh_trap_left_protect(r->open, r->top, PROT_READ | PROT_WRITE);
  return r->open;
}

void oh_trap_decommit(int domain)
{
  struct ring *r = &rings[domain];
  oh_trap_left_protect(r->open, r->top, PROT_NONE);
  r->top = r->open;
}

void oh_trap_begin(caml_domain_state *d) { rings[d->id].low = (uintptr_t)d->young_ptr; }

/* The window of `size` bytes moves down by what was used. */
static void slide(struct ring *r, size_t used, size_t size)
{
  uintptr_t start = r->top - size;
  if (start - r->begin < used + SMALL_PAGE) { /* at the bottom: from the top again */
    oh_trap_left_protect(r->open, r->top, PROT_NONE);
    (void)madvise((void *)r->open, r->purged - r->open, MADV_DONTNEED);
    r->purged = r->top = r->end;
    r->open = r->end - size;
    oh_trap_left_protect(r->open, r->end, PROT_READ | PROT_WRITE);
    return;
  }
  start -= used;
  if (start < r->open) {
    bool near = start - r->begin < AHEAD + SMALL_PAGE;
    uintptr_t open = near ? r->begin + SMALL_PAGE : OH_ROUND_DOWN(start - AHEAD, SMALL_PAGE);
    oh_trap_left_protect(open, r->open, PROT_READ | PROT_WRITE);
    r->open = open;
  }
  oh_trap_left_protect(r->top - used, r->top, PROT_NONE);
  r->top -= used;
  if (r->purged - r->top > READABLE) {
    (void)madvise((void *)(r->top + READABLE / 2), r->purged - r->top - READABLE / 2, MADV_DONTNEED);
    r->purged = r->top + READABLE / 2;
  }
}

void oh_trap_move(caml_domain_state *d)
{
  struct ring *r = &rings[d->id];
  uintptr_t end = (uintptr_t)d->young_end;
  /* A word more than was used: code that sees from the addresses of several blocks that no collection came between them
     must not take the first new block for the next one of those that were left. */
  uintptr_t below = r->low - sizeof(value);
  size_t size = end - (uintptr_t)d->young_start, used = r->low == 0 ? 0 : OH_ROUND_UP(end - below, SMALL_PAGE);
  oh_trap_report_install();
  if (used != 0) {
    if (!r->forced || r->since_slice >= size / 2) r->since_slice = 0;
    r->since_slice += used;
    struct oh_trap_left left = { .begin = end - used, .first = r->low, .end = end, .domain = d->id,
                                 .collection = (uintnat)caml_minor_collections_count, .reason = r->reason };
    if (!r->forced) left.reason = (struct oh_trap_left_reason){ .cause = OH_TRAP_RUNTIME };
    oh_trap_left_add(&left);
    slide(r, used, size);
    d->young_end = d->young_ptr = (value *)r->top;
    d->young_start = (value *)(r->top - size);
    tell_moved(d);
  }
  r->low = 0;
  if (r->forced && r->asked != 0) oh_trap_spent(r->asked);
  r->forced = false;
}

/* --- the major heap ---------------------------------------------------------------------------------------------- */

void oh_trap_live_words(size_t words) { oh_store_relaxed(&live_words, words); }

static struct oh_trap_left note(uintptr_t begin, size_t first_word, size_t block_words)
{
  int domain = Caml_state->id;
  return (struct oh_trap_left){ .begin = begin, .first = begin + first_word * sizeof(value), .block_words = block_words,
                                .domain = domain, .collection = (uintnat)caml_minor_collections_count,
                                .reason = rings[domain].reason };
}

void oh_trap_leave_pool(void *pool, size_t block_words, size_t first_word)
{
  struct oh_trap_left left = note((uintptr_t)pool, first_word, block_words);
  left.end = left.begin + OH_POOL;
  if (block_words != 0) oh_trap_old_leave_pool(&left);
  else oh_pool_free(pool);
}

void oh_trap_leave_large(void *block, size_t block_words, size_t first_word, bool moved)
{
  struct oh_trap_left left = note((uintptr_t)block, first_word, block_words);
  left.all_dead = !moved;
  oh_trap_old_leave(&left);
}
