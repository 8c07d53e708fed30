/* SPDX-License-Identifier: MIT */
#include "prelude.h"
#include "cycle.h"
#include "base.h"
#include "clock.h"
#include "reclaim.h"
#include "limit.h"
#include "pool.h"
#include "settings.h"
#include <caml/domain.h>
#include <caml/shared_heap.h>
#include <caml/signals.h>
#include <caml/osdeps.h>
#include <caml/version.h>

/* Used by the domain's thread, or in its place by another one with its lock. Domains that share a record have a cycle
   later than they should. */
#define RECORDS 128
#define DUE_MOST 1000000000 /* nanoseconds that count as running time between two slices */
#define IDLE_SLICE 2000000  /* nanoseconds that a slice takes which the reclaim thread has asked for */
static struct record { uint64_t last, began, used; } records[RECORDS];

double oh_cycle_part;
bool oh_cycle_is_forced;
bool oh_cycle_is_borrowed;
bool oh_cycle_requested;
bool oh_cycle_wakes;
static void (*survey)(struct oh_pace_heap *);

/* In a child of a fork: the hook of blocking sections is ours until the first of them, so the others cost nothing. What
   the child has by then is one thread; if it starts others before, they find the hook as it was, or one that does what
   it did. A child that is forked in between inherits all of that. A hook that has wrapped ours stays, and leads to ours
   for ever: then ours is not put in place again. */
static void (*enter)(void);
static bool awaits, wrapped;

static void enter_first(void)
{
  void (*ours)(void) = enter_first;
  if (__atomic_exchange_n(&awaits, false, __ATOMIC_SEQ_CST)) {
    if (!oh_cas_seq_cst(&caml_enter_blocking_section_hook, &ours, enter)) oh_store_relaxed(&wrapped, true);
    oh_reclaim_wake();
  }
  enter();
}

static void await_section(void)
{
  awaits = true;
  if (wrapped || caml_enter_blocking_section_hook == enter_first) return;
  enter = caml_enter_blocking_section_hook;
  caml_enter_blocking_section_hook = enter_first;
}

void oh_cycle_start(void (*function)(struct oh_pace_heap *))
{
  survey = function;
  oh_reclaim_await = await_section;
#if OCAML_VERSION < 50500 /* what has died in a cycle is found in the next, and swept in the one after that */
  oh_limit_ahead = 2.5;
#endif
  if (!oh_settings.reclaim && oh_limit_bytes == 0) return;
  char const *parameters = caml_secure_getenv("OCAMLRUNPARAM");
  oh_pace_read(parameters != NULL ? parameters : caml_secure_getenv("CAMLRUNPARAM"));
}

static struct record *record(caml_domain_state *d) { return &records[(uintnat)d->id % RECORDS]; }

/* What was allocated in a heap below the floor asks for no work. A domain that has just started counts apart what it
   allocates (OCaml 5.4): it is left alone. */
static void forget_allocated(caml_domain_state *d)
{
#if OCAML_VERSION >= 50400
  if (d->allocated_words_suspended != 0 || d->allocated_words_resumed != 0) return;
#endif
  d->stat_major_words += d->allocated_words;
  d->allocated_words = 0;
}

static size_t domains(void) { return atomic_load_relaxed(&caml_num_domains_running); }

/* Of one domain: the others' heaps may be as large. */
static bool is_large(size_t bytes) { return bytes * domains() >= OH_PACE_LEAST; }

/* Clocks are read in heaps only in which time matters: where blocks die at once, slices come often. */
void oh_cycle_slice_begin(caml_domain_state *d)
{
  struct record *r = record(d);
  size_t bytes = caml_heap_size(d->shared_heap);
  bool away = oh_cycle_borrowed(), asked = oh_load_relaxed(&oh_cycle_requested) && caml_bt_is_self();
  bool by_time = oh_settings.reclaim && is_large(bytes);
  oh_cycle_note_free(d, d->shared_heap);
  if (asked) d->extra_heap_resources += oh_pace_share(IDLE_SLICE, bytes);
  if (!by_time && oh_limit_bytes == 0) {
    if (bytes < oh_settings.floor) forget_allocated(d);
    r->last = 0;
    return;
  }
  uint64_t now = oh_clock_now(), last = r->last, since = now - last;
  if (oh_limit_bytes != 0 && !away) {
    size_t allocated = Bsize_wsize((size_t)d->allocated_words), free = oh_cycle_free(d->shared_heap);
    d->extra_heap_resources += oh_limit_due((unsigned)d->id, allocated, free, now);
  }
  if (bytes < oh_settings.floor) forget_allocated(d);
  r->began = now;
  r->used = oh_clock_used_here();
  r->last = now;
  if (!by_time || away || asked || last == 0) return;
  oh_reclaim_wake();
  d->extra_heap_resources += oh_pace_due(since < DUE_MOST ? since : DUE_MOST, bytes, domains());
}

void oh_cycle_slice_end(caml_domain_state *d)
{
  struct record *r = record(d);
  oh_cycle_note_free(d, d->shared_heap);
  if (r->began == 0) return;
  uint64_t now = oh_clock_now();
  oh_pace_slice(oh_clock_used_here() - r->used);
  if (oh_limit_bytes != 0) oh_limit_slice((unsigned)d->id, now, now - r->began);
  r->began = 0;
}

#if OCAML_VERSION >= 50200
#define finish_cycle() caml_finish_major_cycle(0)
#else
#define finish_cycle() caml_finish_major_cycle()
#endif

/* What has died may need three cycles to be freed; and finalisers may have given memory to malloc. */
void oh_cycle_collect_for(size_t bytes)
{
  unsigned slot = (unsigned)Caml_state->id;
  for (int i = 0; i < 3; i++) {
    uint64_t now = oh_clock_now();
    if (!oh_limit_exceeds(slot, bytes, now)) return;
    finish_cycle();
    (void)oh_limit_trim_malloc(true);
    uint64_t then = oh_clock_now();
    oh_limit_stopped(slot, then, then - now);
  }
}

void oh_cycle_after_slice(void)
{
  if (oh_limit_bytes != 0 && oh_limit_is_passed() && domains() > 1 && !caml_bt_is_self()) oh_cycle_collect_for(0);
}

/* What is free is in pools that are in use: it counts nowhere else. */
static void survey_all(struct oh_pace_heap *heap)
{
  survey(heap);
#if OH_DEBUG
  struct oh_pool_counters pool;
  oh_pool_count(&pool);
  OH_ASSERT(heap->free <= pool.pools * OH_POOL && oh_pace_free() == heap->free);
#endif
}

void oh_cycle_compacted(void)
{
  struct oh_pace_heap heap = {0};
  survey_all(&heap);
  oh_pace_moved(&heap);
  if (oh_limit_bytes != 0) oh_limit_moved(heap.free);
}

void oh_cycle_ended(uintnat swept)
{
  oh_cycle_part = 0;
  struct oh_pace_heap heap = {.swept = swept * sizeof(value)};
  survey_all(&heap);
  bool timed = oh_limit_bytes != 0 || heap.live + heap.free >= OH_PACE_LEAST;
  uint64_t now = timed ? oh_clock_now() : 0;
  if (oh_limit_bytes != 0) heap.pressed = oh_limit_cycle(heap.live, heap.free, now);
  bool idle = oh_cycle_borrowed() || oh_load_relaxed(&oh_cycle_requested);
  oh_cycle_part = oh_pace_cycle(&heap, now, idle && !oh_load_relaxed(&oh_cycle_wakes));
}

void oh_cycle_set_borrowed(bool away) { oh_store_relaxed(&oh_cycle_is_borrowed, away); }
