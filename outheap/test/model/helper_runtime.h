/* SPDX-License-Identifier: MIT */
/* The runtime around the helper's code, played for helper_schedule.c: names, blocks, pools, phases; and that code
   itself, under the scheduler of fibers.h. It checks that no pool is lost, and none swept twice. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base.h"
#include "clock.h"
#include "helper.h"
#include "os.h"
#include "page.h"
#include "pointer.h"
#include "region.h"
#include "service.h"
#include "settings.h"
#include "space.h"
#include "start.h"
#include "table.h"
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "fibers.h" /* the functions for threads are its own from here on */

/* Time passes when somebody asks for it, a processor's at times by less. */
static uint64_t elapsed = 1000000000, used;
static uint64_t tick(void)
{
  uint64_t n = below(4) == 0 ? 10000000 : 100000;
  elapsed += n;
  used += below(2) ? n : n / 8;
  return elapsed;
}
#define syscall(...) (-1) /* the system has forgotten the thread */
#define oh_clock_now tick
#define oh_clock_of_machine tick
#define oh_clock_used_here() (used)
#define oh_helper_processors() (1 + below(4))

#define atomic_load(p) (point(), *(p))
#define atomic_fetch_add(p, n) (point(), *(p) += (uintnat)(n), (void)0)

/* --- the runtime's names ------------------------------------------------------------------------------------------ */

enum { DOMAINS = 2, OUTSIDE = DOMAINS, HELPER = THREAD };
typedef struct caml_domain_state caml_domain_state;
#define Caml_state ((caml_domain_state *)fiber_local)
typedef intptr_t value, intnat;
typedef uintptr_t uintnat;
typedef value *value_ptr;
typedef struct { value_ptr start, end; } mark_entry;
struct mark_stack { mark_entry *stack; uintnat count, size; };
enum { NUM_SIZECLASSES = 2 };
struct heap_stats { intnat pool_live_blocks, pool_live_words, pool_frag_words; };
typedef struct pool {
  struct pool *next;
  caml_domain_state *owner;
  unsigned sz, live, garbage; /* blocks; of these, garbage */
  bool finalises;             /* one of the garbage has a finaliser */
  bool unswept, busy, released;
} pool;
struct caml_heap_state {
  caml_domain_state *owner;
  pool *avail_pools[NUM_SIZECLASSES], *full_pools[NUM_SIZECLASSES];
  pool *unswept_avail_pools[NUM_SIZECLASSES], *unswept_full_pools[NUM_SIZECLASSES];
  unsigned next_to_sweep;
  struct heap_stats stats;
};
struct caml_domain_state {
  int marking_done, sweeping_done;
  struct mark_stack *mark_stack;
  struct caml_heap_state *shared_heap;
  uintnat swept_words, sweep_work_done_between_slices;
};
enum { Slice_interruptible, Slice_uninterruptible, Slice_opportunistic };
static enum { Phase_sweep_main, Phase_sweep_and_mark_main, Phase_mark_final } caml_gc_phase;
static uintnat num_domains_to_mark, num_domains_to_sweep, caml_num_domains_running = DOMAINS;
static uintnat alloc_counter, work_counter;

#define OCAML_VERSION 50500
#define CAMLassert(condition) OH_CHECK(condition)
#define Wsize_bsize(bytes) ((bytes) / sizeof(value))
#define diffmod(a, b) ((intnat)((a) - (b)))
#define OH_MARK_STACK_SHARE_OF_STOCK 32
#define OH_MARK_LOOP_QUEUE 16
#define mark_stack_share(stock) (stock)
#define caml_heap_size(heap) ((void)(heap), (uintnat)1 << 23)
#define caml_stat_alloc_noexc malloc
#define OH_PRELUDE_H
#ifndef __x86_64__
#define __x86_64__ 1 /* the code is that of the processors that have a helper */
#endif

static void ephe_next_cycle(void);
static intnat mark(intnat budget);
static intnat caml_sweep(struct caml_heap_state *heap, intnat budget);
static intnat pool_sweep(struct caml_heap_state *heap, pool **list, unsigned sz, int release);
static void pool_release(struct caml_heap_state *heap, pool *p, unsigned sz);
static void caml_darken(caml_domain_state *d, value v, void *unused);
static void mark_stack_push_range(struct mark_stack *s, value_ptr start, value_ptr end);
static void oh_helper_domain_marking_begins(caml_domain_state *d);

/* The marking loop is played; mark_loop.h has tests of its own. */
#define OH_MARK_LOOP_H
struct oh_mark_loop_policy {
  void (*continuation)(value v);
  bool (*meets_region)(uintptr_t v);
  void (*push)(struct mark_stack *stk, value_ptr start, value_ptr end);
  void (*count)(uintnat blocks);
};
static intnat mark_in_helper(struct oh_mark_loop_policy const *policy, struct mark_stack *s, intnat budget);
#define oh_mark_loop_run(form, policy, stack, budget) mark_in_helper(policy, stack, budget)

static bool reports;
#define oh_table_reporting() (point(), reports)

/* A block that Boxroot would have, in memory that a library has handed to the marker. */
static bool is_pool(uintptr_t address);
#define oh_page_bits(address) ((uint8_t)(is_pool(address) ? OH_SPACE_MARKED + 1 : 0))

#include "service.c"
#include "sweep_queue.h"
#include "helper_domain.h"

/* --- the heap: blocks --------------------------------------------------------------------------------------------- */

enum { BLOCKS = 24, FIELDS = 3, REGISTERS = 2, NOTHING = 1 };
enum { GLOBAL = 0, POOL = 1 };    /* a global variable's; the pool, which the first domain has */
static value (*heap)[FIELDS + 1]; /* a header's word, then fields */
static bool marked[BLOCKS];
static value registers[DOMAINS][REGISTERS], keys[DOMAINS], data[DOMAINS], finalisers[DOMAINS];
static caml_domain_state domains[DOMAINS];
static bool waits_for_key[DOMAINS], finalised[DOMAINS];
static uintnat round_now, rounds_done, rounds_to_do, round_of[DOMAINS];
static unsigned cycles, forks, children, ends, enders; /* enders: that are at it */

static value block(unsigned i) { return (value)&heap[i][1]; }
static value any_block(void) { return block(POOL + 1 + below(BLOCKS - POOL - 1)); }
static unsigned number(value v) { return (unsigned)((value(*)[FIELDS + 1])(v - sizeof(value)) - heap); }
static bool is_pool(uintptr_t address) { return number((value)address) == POOL; }
static bool is_continuation(value v) { return number(v) % 4 == 3; }
static unsigned number_of(caml_domain_state const *d) { return (unsigned)(d - domains); }
static bool marking_started(void) { return caml_gc_phase != Phase_sweep_main; }

static void mark_stack_push_range(struct mark_stack *s, value_ptr start, value_ptr end)
{
  OH_CHECK(s->count < s->size);
  s->stack[s->count++] = (mark_entry){ start, end };
}

/* As the runtime's; a continuation is marked with all that it leads to. */
static void darken(caml_domain_state *d, value v)
{
  OH_CHECK(d == Caml_state);
  if (!marking_started() || v == NOTHING || marked[number(v)]) return;
  if (d->marking_done) {
    atomic_fetch_add(&num_domains_to_mark, 1);
    d->marking_done = 0;
  }
  marked[number(v)] = true;
  if (!is_continuation(v)) mark_stack_push_range(d->mark_stack, (value_ptr)v, (value_ptr)v + FIELDS);
  else
    for (unsigned i = 0; i < FIELDS; i++) point(), darken(d, ((value_ptr)v)[i]);
}

static void caml_darken(caml_domain_state *d, value v, void *unused) { (void)unused, point(), darken(d, v); }
static void ephe_next_cycle(void) { round_now++, rounds_done = 0; }

static intnat mark(intnat budget)
{
  caml_domain_state *d = Caml_state;
  struct mark_stack *s = d->mark_stack;
  while (budget > 0 && !d->marking_done) {
    if (s->count == 0) {
      ephe_next_cycle();
      d->marking_done = 1;
      atomic_fetch_add(&num_domains_to_mark, -1);
      continue;
    }
    mark_entry e = s->stack[--s->count];
    budget--;
    for (value_ptr p = e.start; p < e.end; p++) point(), darken(d, *p);
  }
  return budget;
}

static intnat mark_in_helper(struct oh_mark_loop_policy const *policy, struct mark_stack *s, intnat budget)
{
  uintnat blocks = 0;
  OH_CHECK(oh_helper.counted && running == &fibers[HELPER]);
  for (unsigned most = below(6); s->count != 0 && most != 0; most--) {
    mark_entry e = s->stack[--s->count];
    OH_CHECK(!is_pool((uintptr_t)e.start));
    for (value_ptr p = e.start; p < e.end; p++, budget--) {
      uintnat count = s->count;
      point();
      OH_CHECK(s->count == count && oh_helper.counted); /* it is this thread's while it marks */
      value v = *p;
      if (v == NOTHING || marked[number(v)]) continue;
      if (is_continuation(v) || number(v) == POOL) policy->continuation(v);
      else {
        marked[number(v)] = true;
        policy->push(s, (value_ptr)v, (value_ptr)v + FIELDS);
        blocks++;
      }
    }
  }
  point();
  policy->count(blocks);
  return budget;
}

static void look_at_ephemerons(unsigned d)
{
  uintnat now = round_now;
  if (!waits_for_key[d] || now <= round_of[d]) return;
  point();
  if (marked[number(keys[d])]) {
    waits_for_key[d] = false;
    darken(&domains[d], data[d]);
    ephe_next_cycle();
    rounds_to_do--;
    return;
  }
  point();
  if (domains[d].marking_done && now == round_now) round_of[d] = now, rounds_done++;
}

/* --- the heap: pools ---------------------------------------------------------------------------------------------- */

enum { POOLS = 12, POOL_BLOCKS = 4, BLOCK_WORDS = 3, POOL_WORK = 7 };
static pool pools[DOMAINS][POOLS];
static intnat sweep_work[DOMAINS], expected_work[DOMAINS]; /* of this cycle */

/* As the runtime's, with the calls that shared_heap.edits puts there. A block with a finaliser that stays is all that
   is left of a pool's garbage. */
static intnat pool_sweep(struct caml_heap_state *h, pool **list, unsigned sz, int release)
{
  pool *p = *list;
  if (p == NULL) return 0;
  *list = p->next;
  OH_CHECK(p->owner == h->owner && p->sz == sz && p->unswept && !p->busy && !p->released);
  p->busy = true;
  point();
  unsigned freed = p->garbage;
  if (p->finalises) {
    if (oh_sweeping_leaves(h)) freed--, release = 0;
    else {
      OH_CHECK(Caml_state == p->owner);
      p->finalises = false;
    }
  }
  p->garbage -= freed;
  p->live -= freed;
  p->unswept = p->garbage != 0;
  h->stats.pool_live_blocks -= freed;
  h->stats.pool_live_words -= freed * BLOCK_WORDS;
  h->owner->swept_words += freed * BLOCK_WORDS;
  point();
  p->busy = false;
  if (release && p->live == 0) oh_sweeping_give_up(h, p, sz);
  else {
    pool **to = p->live == POOL_BLOCKS ? &h->full_pools[sz] : &h->avail_pools[sz];
    p->next = *to;
    *to = p;
  }
  return POOL_WORK;
}

static void pool_release(struct caml_heap_state *h, pool *p, unsigned sz)
{
  OH_CHECK(Caml_state == p->owner && h == Caml_state->shared_heap && p->sz == sz && !p->busy && !p->released
           && p->live == 0);
  p->released = true;
}

static intnat caml_sweep(struct caml_heap_state *h, intnat work)
{
  while (work > 0 && h->next_to_sweep < NUM_SIZECLASSES) {
    unsigned sz = h->next_to_sweep;
    work -= pool_sweep(h, &h->unswept_avail_pools[sz], sz, 1);
    if (work > 0) work -= pool_sweep(h, &h->unswept_full_pools[sz], sz, 1);
    if (h->unswept_avail_pools[sz] == NULL && h->unswept_full_pools[sz] == NULL) h->next_to_sweep++;
  }
  return work;
}

/* As in pool_find: one more block, if that needs no new pool. */
static void allocate(unsigned d, unsigned sz)
{
  struct caml_heap_state *h = domains[d].shared_heap;
  oh_sweeping_find(h, sz);
  while (h->avail_pools[sz] == NULL && h->unswept_avail_pools[sz] != NULL)
    domains[d].sweep_work_done_between_slices += (uintnat)pool_sweep(h, &h->unswept_avail_pools[sz], sz, 0);
  pool *p = h->avail_pools[sz];
  if (p == NULL) return;
  OH_CHECK(p->owner == &domains[d] && !p->busy && !p->released && p->live < POOL_BLOCKS);
  h->stats.pool_live_blocks++;
  h->stats.pool_live_words += BLOCK_WORDS;
  if (++p->live != POOL_BLOCKS) return;
  h->avail_pools[sz] = p->next;
  p->next = h->full_pools[sz];
  h->full_pools[sz] = p;
}

/* A cycle begins: all pools are unswept, and some of their blocks garbage. */
static void unsweep(unsigned d)
{
  struct caml_heap_state *h = domains[d].shared_heap;
  for (unsigned s = 0; s < NUM_SIZECLASSES; s++) {
    OH_CHECK(h->unswept_avail_pools[s] == NULL && h->unswept_full_pools[s] == NULL);
    h->avail_pools[s] = h->full_pools[s] = NULL;
  }
  h->next_to_sweep = 0;
  h->stats = (struct heap_stats){ 0, 0, 0 };
  sweep_work[d] = expected_work[d] = 0;
  domains[d].swept_words = domains[d].sweep_work_done_between_slices = 0;
  unsigned fewer = below(POOLS + 1);
  for (unsigned i = 0; i < POOLS; i++) {
    pool *p = &pools[d][i];
    unsigned live = 1 + below(POOL_BLOCKS), garbage = below(live + 1);
    *p = (pool){ NULL, &domains[d], i % NUM_SIZECLASSES, live, garbage, garbage != 0 && below(4) == 0, i >= fewer,
                 false, i < fewer };
    if (p->released) continue;
    pool **to = live == POOL_BLOCKS ? &h->unswept_full_pools[p->sz] : &h->unswept_avail_pools[p->sz];
    p->next = *to;
    *to = p;
    expected_work[d] += POOL_WORK;
    h->stats.pool_live_blocks += live;
    h->stats.pool_live_words += live * BLOCK_WORDS;
  }
}

/* All are swept, each has counted once, and each is in its list. */
static void check_pools(unsigned d)
{
  struct caml_heap_state *h = domains[d].shared_heap;
  struct heap_stats all = { 0, 0, 0 };
  unsigned listed = 0, kept = 0;
  for (unsigned s = 0; s < NUM_SIZECLASSES; s++) {
    OH_CHECK(h->unswept_avail_pools[s] == NULL && h->unswept_full_pools[s] == NULL);
    for (pool *p = h->avail_pools[s]; p != NULL; p = p->next, listed++) OH_CHECK(p->sz == s && p->live < POOL_BLOCKS);
    for (pool *p = h->full_pools[s]; p != NULL; p = p->next, listed++) OH_CHECK(p->sz == s && p->live == POOL_BLOCKS);
  }
  for (pool *p = pools[d]; p < pools[d] + POOLS; p++) {
    OH_CHECK(!p->busy && !p->unswept && p->owner == &domains[d]);
    kept += !p->released;
    all.pool_live_blocks += p->released ? 0 : p->live;
  }
  OH_CHECK(listed == kept);
  OH_CHECK(sweep_work[d] + (intnat)domains[d].sweep_work_done_between_slices == expected_work[d]);
  OH_CHECK(h->stats.pool_live_blocks == all.pool_live_blocks);
  OH_CHECK(h->stats.pool_live_words == all.pool_live_blocks * BLOCK_WORDS && h->stats.pool_frag_words == 0);
}
