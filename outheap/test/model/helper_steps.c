/* SPDX-License-Identifier: MIT */
/* The helper and what domains do with it (overlay/ocaml5/helper_thread.h, helper_domain.h), step by step on one thread, with the
   runtime around them played here: a heap of a few blocks, two domains, phases, ephemerons, finalisers. Wherever the
   code holds no lock in the middle of something (while the helper marks; while a domain darkens what was deferred),
   others take steps at random. The code never ends a cycle with a block that can be reached and is not marked, and
   each cycle can be ended. ../test_helper_steps.py breaks the code, and runs this.

     helper_steps SEED CYCLES */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base.h"
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
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* --- the runtime's names ------------------------------------------------------------------------------------------ */

typedef intptr_t value, intnat;
typedef uintptr_t uintnat;
typedef value *value_ptr;
typedef struct { value_ptr start, end; } mark_entry;
struct mark_stack { mark_entry *stack; uintnat count, size; };
struct caml_heap_state { int unused; };
typedef struct { int marking_done, sweeping_done; struct mark_stack *mark_stack; struct caml_heap_state *shared_heap; }
  caml_domain_state;
enum { Slice_interruptible, Slice_uninterruptible, Slice_opportunistic };
enum { Phase_sweep_and_mark_main, Phase_mark_final, Phase_sweep_ephe } caml_gc_phase;

static caml_domain_state *Caml_state;
static atomic_uintptr_t num_domains_to_mark, caml_num_domains_running, alloc_counter, work_counter;

#define CAMLassert(condition) OH_CHECK(condition)
#define Wsize_bsize(bytes) ((bytes) / sizeof(value))
#define cpu_relax() ((void)0)
#define diffmod(a, b) ((intnat)((a) - (b)))
#define OH_MARK_STACK_SHARE_OF_STOCK 32
#define OH_MARK_LOOP_QUEUE 16
#define mark_stack_share(stock) (stock)
#define caml_heap_size(heap) ((void)(heap), (uintnat)1 << 20)
#define caml_sweep(heap, budget) ((void)(heap), (budget))

static void ephe_next_cycle(void);
static intnat mark(intnat budget);
static void caml_darken(caml_domain_state *d, value v, void *unused);
static void mark_stack_push_range(struct mark_stack *s, value_ptr start, value_ptr end);
static intnat mark_in_helper(struct mark_stack *s, intnat budget);
struct oh_mark_loop_policy {
  void (*continuation)(value v);
  bool (*meets_region)(uintptr_t v);
  void (*push)(struct mark_stack *stk, value_ptr start, value_ptr end);
  void (*count)(uintnat blocks);
};
#define OH_MARK_LOOP_H
#define oh_mark_loop_run(form, policy, stack, budget) ((void)(policy), mark_in_helper(stack, budget))
static void oh_helper_domain_marking_begins(caml_domain_state *d);

/* Pools are swept already, but for those that wait now and then, until somebody takes them: sweep_queue.h has tests of
   its own. */
#define OH_SWEEPING_H
#define OH_HELPER 1
enum { OH_SWEEPING_ALL = -1 };
static bool yes(void) { return true; }
static unsigned below(unsigned n);
static bool now_and_then(void) { return below(4) == 0; }
#define oh_sweeping_hand_over(heap) ((void)(heap))
#define oh_sweeping_is_handed(heap) ((void)(heap), false)
#define oh_sweeping_collect(heap, most) ((void)(heap), (void)(most), 0)
#define oh_sweeping_take(heap, most) ((void)(heap), (void)(most), false)
#define oh_sweeping_ends(heap) ((void)(heap), true)
#define oh_sweeping_waits now_and_then
#define oh_sweeping_is_idle yes
#define oh_sweeping_batch() 0
#define oh_sweeping_lock() ((void)0)
#define oh_sweeping_unlock() ((void)0)

/* Time passes when somebody asks for it, and the thread is this one. */
static int tick(clockid_t clock, struct timespec *t)
{
  static long now = 1000000000;
  (void)clock;
  now += 100000;
  *t = (struct timespec){ now / 1000000000, now % 1000000000 };
  return 0;
}
#define clock_gettime tick
static bool has_thread(struct oh_service *s) { return s != NULL; }
#define oh_service_start has_thread
#define oh_service_end(service, ask) ((void)(service), (ask)())
#define oh_service_forget(service) ((void)(service))

/* A block that Boxroot would have, in memory that a library has handed to the marker. */
static bool is_pool(uintptr_t address);
#define oh_page_bits(address) ((uint8_t)(is_pool(address) ? OH_SPACE_MARKED + 1 : 0))

#include "helper_domain.h"

/* --- the heap ----------------------------------------------------------------------------------------------------- */

enum { BLOCKS = 12, FIELDS = 3, DOMAINS = 2, REGISTERS = 2, NOTHING = 1 };
enum { GLOBAL = 0, POOL = 1 }; /* a global variable's; the pool, which the first domain has */
static value (*heap)[FIELDS + 1]; /* a header's word, then fields */
static bool marked[BLOCKS];
static value registers[DOMAINS][REGISTERS], keys[DOMAINS], data[DOMAINS], finalisers[DOMAINS];
static caml_domain_state domains[DOMAINS];
static bool waits_for_key[DOMAINS];
static uintnat round_now, rounds_done, rounds_to_do, round_of[DOMAINS];
static bool finalised[DOMAINS], in_helper;
static bool is_away[DOMAINS]; /* it is in the middle of a slice, or has yet to darken its roots */
static unsigned depth, cycles;
static uint64_t state;

static unsigned below(unsigned n)
{
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (unsigned)(state >> 32) % n;
}

static value block(unsigned i) { return (value)&heap[i][1]; }
static value any_block(void) { return block(POOL + 1 + below(BLOCKS - POOL - 1)); }
static unsigned number(value v) { return (unsigned)((value(*)[FIELDS + 1])(v - sizeof(value)) - heap); }
static bool is_pool(uintptr_t address) { return number((value)address) == POOL; }
static bool is_continuation(value v) { return number(v) % 4 == 3; }

static void mark_stack_push_range(struct mark_stack *s, value_ptr start, value_ptr end)
{
  OH_CHECK(s->count < s->size);
  s->stack[s->count++] = (mark_entry){ start, end };
}

static void push(struct mark_stack *s, value v) { mark_stack_push_range(s, (value_ptr)v, (value_ptr)v + FIELDS); }

/* As the runtime's; a continuation is marked with all that it leads to. */
static void darken(caml_domain_state *d, value v)
{
  if (v == NOTHING || marked[number(v)]) return;
  if (d->marking_done) {
    atomic_fetch_add(&num_domains_to_mark, 1);
    d->marking_done = 0;
  }
  marked[number(v)] = true;
  if (!is_continuation(v)) push(d->mark_stack, v);
  else for (unsigned i = 0; i < FIELDS; i++) darken(d, ((value_ptr)v)[i]);
}

static void others(void);
static void caml_darken(caml_domain_state *d, value v, void *unused)
{
  (void)unused;
  others();
  Caml_state = d;
  darken(d, v);
}

/* --- marking ------------------------------------------------------------------------------------------------------ */

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
    for (value_ptr p = e.start; p < e.end; p++) darken(d, *p);
  }
  return budget;
}

static intnat mark_in_helper(struct mark_stack *s, intnat budget)
{
  in_helper = true;
  OH_CHECK(oh_helper.counted);
  for (unsigned most = below(3); s->count != 0 && most != 0; most--) {
    mark_entry e = s->stack[--s->count];
    OH_CHECK(!is_pool((uintptr_t)e.start));
    for (value_ptr p = e.start; p < e.end; p++, budget--) {
      uintnat count = s->count;
      others();
      OH_CHECK(s->count == count); /* it is this thread's while it is busy */
      value v = *p;
      if (v == NOTHING || marked[number(v)]) continue;
      if (is_continuation(v) || number(v) == POOL) oh_helper_thread_defer(v);
      else {
        marked[number(v)] = true;
        oh_helper_thread_push(s, (value_ptr)v, (value_ptr)v + FIELDS);
      }
    }
  }
  others();
  in_helper = false;
  return budget;
}

static void help(void)
{
  static struct oh_helper_thread_span span;
  if (in_helper || pthread_mutex_trylock(&oh_helper.lock) != 0) return;
  if (oh_helper_thread_exists()) (void)oh_helper_thread_work(&span);
  if (oh_helper.part == OH_HELPER_IN && below(30) == 0) oh_helper_thread_judge(true, 0); /* it goes on at once, or with the next cycle */
  pthread_mutex_unlock(&oh_helper.lock);
}

static void look_at_ephemerons(unsigned d)
{
  uintnat now = round_now;
  if (!waits_for_key[d] || now <= round_of[d]) return;
  if (marked[number(keys[d])]) {
    waits_for_key[d] = false;
    darken(&domains[d], data[d]);
    ephe_next_cycle();
    rounds_to_do--;
    return;
  }
  others();
  if (domains[d].marking_done && now == round_now) round_of[d] = now, rounds_done++;
}

static void slice(unsigned d, int mode)
{
  is_away[d] = true;
  Caml_state = &domains[d];
  oh_helper_domain_slice(Caml_state, mode);
  Caml_state = &domains[d];
  intnat left = oh_helper_domain_mark(mode == Slice_uninterruptible ? 100 : 1 + below(3), mode);
  if (left > 0 && mode != Slice_opportunistic) look_at_ephemerons(d);
  if (caml_gc_phase == Phase_mark_final && !finalised[d]) {
    finalised[d] = true;
    darken(&domains[d], finalisers[d]);
  }
  is_away[d] = false;
}

/* --- the program -------------------------------------------------------------------------------------------------- */

static void mutate(unsigned d)
{
  value *r = &registers[d][below(REGISTERS)], from = registers[d][below(REGISTERS)];
  switch (below(6)) {
    case 0: *r = NOTHING; return;
    case 1: *r = block(GLOBAL); return;
    case 2: /* weak reads darken, and so does resuming a continuation */
      if (keys[d] != NOTHING) darken(&domains[d], data[d]), *r = data[d];
      return;
    case 3:
      if (finalised[d] && finalisers[d] != NOTHING) *r = finalisers[d], finalisers[d] = NOTHING;
      return;
  }
  if (from == NOTHING) return;
  if (is_continuation(from)) darken(&domains[d], from);
  value_ptr field = (value_ptr)from + below(FIELDS);
  if (number(from) == POOL) return;
  if (below(2)) *r = *field;
  else {
    darken(&domains[d], *field);
    *field = *r != NOTHING && number(*r) == POOL ? NOTHING : *r;
  }
}

static void fork_here(void)
{
  if (in_helper || pthread_mutex_trylock(&oh_helper.lock) != 0) return;
  pthread_mutex_unlock(&oh_helper.lock);
  oh_helper_thread_before_fork();
  if (below(2)) oh_helper_thread_after_fork();
  else oh_helper_thread_in_child();
}

static void any_step(void)
{
  unsigned d = below(DOMAINS), what = below(8);
  if (is_away[d] && what < 6) return;
  switch (what) {
    case 0: case 1: mutate(d); break;
    case 2: slice(d, Slice_uninterruptible); break;
    case 3: slice(d, Slice_opportunistic); break;
    case 4: case 5: slice(d, Slice_interruptible); break;
    case 6: help(); break;
    case 7: if (below(20) == 0) fork_here(); break;
  }
}

static void others(void)
{
  caml_domain_state *d = Caml_state;
  if (depth >= 3 || below(3) != 0) return;
  depth++;
  any_step();
  depth--;
  Caml_state = d;
}

/* --- cycles ------------------------------------------------------------------------------------------------------- */

static void check(void)
{
  uintnat n = oh_helper.counted;
  for (unsigned d = 0; d < DOMAINS; d++) n += !domains[d].marking_done;
  OH_CHECK(atomic_load(&num_domains_to_mark) == n);
  bool held = oh_helper_thread_marks() || oh_helper.inbox_count || oh_helper.stack.count || oh_helper.deferred.count
              || oh_helper.own.count;
  OH_CHECK(!held || oh_helper.counted);
}

static void reach(bool *found, value v)
{
  if (v == NOTHING || found[number(v)]) return;
  found[number(v)] = true;
  for (unsigned i = 0; i < FIELDS; i++) reach(found, ((value_ptr)v)[i]);
}

static void begin(void)
{
  memset(marked, 0, sizeof marked);
  caml_gc_phase = Phase_sweep_and_mark_main;
  round_now = 1, rounds_done = 0, rounds_to_do = DOMAINS;
  atomic_store(&num_domains_to_mark, DOMAINS);
  for (unsigned d = 0; d < DOMAINS; d++) {
    finalisers[d] = below(2) ? any_block() : NOTHING;
    keys[d] = any_block(), data[d] = any_block();
    waits_for_key[d] = true, finalised[d] = false, is_away[d] = true, round_of[d] = 0, domains[d].marking_done = 0;
    registers[d][0] = any_block();
  }
  for (unsigned i = 0; i < BLOCKS; i++)
    for (unsigned f = 0; f < FIELDS; f++) heap[i][1 + f] = below(2) ? any_block() : NOTHING;
  for (unsigned d = 0; d < DOMAINS; d++) {
    caml_domain_state *s = Caml_state = &domains[d];
    if (d == 0) {
      darken(s, block(GLOBAL));
      darken(s, block(POOL));
    }
    for (unsigned r = 0; r < REGISTERS; r++) darken(s, registers[d][r]);
    oh_helper_domain_marking_begins(s);
    is_away[d] = false;
    help();
  }
}

static bool is_complete(void) { return atomic_load(&num_domains_to_mark) == 0 && rounds_to_do == rounds_done; }

/* True: the cycle has ended. */
static bool change_phase(void)
{
  if (!is_complete()) return false;
  help();
  if (!is_complete()) return false;
  if (caml_gc_phase == Phase_sweep_and_mark_main) {
    caml_gc_phase = Phase_mark_final;
    return false;
  }
  if (!finalised[0] || !finalised[1]) return false;
  bool found[BLOCKS] = { false };
  reach(found, block(GLOBAL));
  reach(found, block(POOL));
  for (unsigned d = 0; d < DOMAINS; d++) {
    for (unsigned r = 0; r < REGISTERS; r++) reach(found, registers[d][r]);
    reach(found, finalisers[d]);
  }
  for (bool more = true; more;) {
    more = false;
    for (unsigned d = 0; d < DOMAINS; d++)
      if (found[number(keys[d])] && !found[number(data[d])]) reach(found, data[d]), more = true;
  }
  for (unsigned i = 0; i < BLOCKS; i++) OH_CHECK(!found[i] || marked[i]);
  return true;
}

static void cycle(void)
{
  enum { FREE = 60, MOST = 400 }; /* steps at random, and in all: then the cycle cannot be ended */
  unsigned steps = 0;
  oh_settings.helper_stack = below(3) == 0 ? 2 * sizeof(mark_entry) : 0;
  oh_helper_domain_between_cycles();
  begin();
  do {
    check();
    OH_CHECK(steps < MOST);
    if (steps++ < FREE) any_step();
    else slice(steps % DOMAINS, Slice_uninterruptible);
  } while (!change_phase());
}

int main(int argc, char **argv)
{
  static struct mark_stack stacks[DOMAINS];
  static mark_entry entries[DOMAINS][64 * BLOCKS];
  if (argc != 3) return EXIT_FAILURE;
  setenv("OUTHEAP", "helper=on", 1);
  oh_start();
  char *p = mmap(NULL, 2 * OH_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  heap = (void *)OH_ROUND_UP((uintptr_t)p, OH_CHUNK);
  OH_CHECK(p != MAP_FAILED && oh_table_claim((uintptr_t)heap, OH_KIND_MAJOR));
  state = strtoull(argv[1], NULL, 10) * 2654435761u + 1;
  for (unsigned d = 0; d < DOMAINS; d++) {
    stacks[d] = (struct mark_stack){ entries[d], 0, sizeof entries[d] / sizeof *entries[d] };
    domains[d] = (caml_domain_state){ 1, 1, &stacks[d], NULL };
    for (unsigned r = 0; r < REGISTERS; r++) registers[d][r] = NOTHING;
  }
  for (long most = atol(argv[2]); most > 0; most--, cycles++) cycle();
  printf("%u cycles, %zu with the helper, %zu blocks deferred, %zu entries given back\n", cycles,
         oh_helper_counters.cycles, oh_helper_counters.deferred, oh_helper_counters.given);
  return EXIT_SUCCESS;
}
