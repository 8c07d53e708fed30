/* SPDX-License-Identifier: MIT */
/* The helper's own code (overlay/ocaml5/helper_thread.h, helper_domain.h, sweep_queue.h, core/service.c) under the
   scheduler of fibers.h: its thread, two domains and a thread of C. The runtime around them is played here: blocks,
   pools, phases, ephemerons, finalisers. The code never ends a cycle with a block that can be reached and is not
   marked, or with a pool that is lost, swept twice, or not swept; and each cycle can be ended.
   ../test_helper_schedule.py breaks the code, and runs this.

     helper_schedule SEED CYCLES */
#include "helper_runtime.h"

/* --- a domain ----------------------------------------------------------------------------------------------------- */

static void sweep(unsigned d, intnat budget, int mode)
{
  caml_domain_state *s = &domains[d];
  while (!s->sweeping_done && budget > 0) {
    intnat left = oh_helper_domain_sweep(budget, mode), done = budget - left;
    sweep_work[d] += done;
    budget = left;
    if (done != 0) continue;
    if (!oh_helper_domain_has_swept(mode)) break;
    s->sweeping_done = 1;
    atomic_fetch_add(&num_domains_to_sweep, -1);
  }
}

static void slice(unsigned d, int mode)
{
  intnat budget = mode == Slice_uninterruptible ? 1000 : 1 + (intnat)below(20);
  sweep(d, budget, mode);
  oh_helper_domain_slice(Caml_state, mode);
  if (!marking_started()) return;
  intnat left = domains[d].marking_done ? budget : oh_helper_domain_mark(budget, mode);
  if (mode == Slice_opportunistic) return;
  if (left > 0) look_at_ephemerons(d);
  if (caml_gc_phase == Phase_mark_final && !finalised[d]) {
    finalised[d] = true;
    darken(&domains[d], finalisers[d]);
  }
}

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
  point();
  if (below(2)) *r = *field;
  else {
    darken(&domains[d], *field);
    point();
    *field = *r != NOTHING && number(*r) == POOL ? NOTHING : *r;
  }
}

/* --- forks, and the end of the helper ----------------------------------------------------------------------------- */

static char fork_lock; /* as the reclaim thread's */

static void fork_here(void)
{
  (void)take(&fork_lock);
  oh_helper_thread_before_fork();
  OH_CHECK(!oh_helper_thread_works());
  forks++;
  oh_helper_thread_after_fork();
  (void)leave(&fork_lock);
}

static void act_outside(void);

/* The program goes on as the child, which has the calling thread only; other domains are as good as that. */
static void fork_child(void)
{
  (void)take(&fork_lock);
  oh_helper_thread_before_fork();
  OH_CHECK(!oh_helper_thread_works());
  children++;
  enders = 0;
  fibers[HELPER].exists = fibers[OUTSIDE].exists = false;
  oh_helper_thread_in_child();
  OH_CHECK(!oh_helper_thread_exists());
  reports = false;
  begin_fiber(OUTSIDE, act_outside, NULL);
  (void)leave(&fork_lock);
}

static void end_here(void)
{
  enders++;
  oh_helper_thread_end();
  OH_CHECK(oh_helper.state == OH_HELPER_ENDED && !fibers[HELPER].exists);
  ends++;
  enders--;
}

/* A thread of C. */
static void act_outside(void)
{
  for (;;) {
    for (unsigned n = below(200); n != 0; n--) point();
    switch (below(40)) {
      case 0: if (below(3) == 0) end_here(); break;
      case 1: case 2: reports = !reports; break;
      default: fork_here();
    }
    yield();
  }
}

/* --- cycles ------------------------------------------------------------------------------------------------------- */

static unsigned begun[DOMAINS], marks_from[DOMAINS]; /* the last cycle that it has begun, or begun to mark */
static unsigned marking_cycle, arrived;
static unsigned stopped_domains;
static bool stops, goes_on; /* the domains are to stop; a cycle is left */
static unsigned most_cycles;

static bool runs_again(void const *unused) { return (void)unused, !stops; }
static bool all_others_stopped(void const *unused) { return (void)unused, stopped_domains == DOMAINS - 1; }
static bool all_arrived(void const *target) { return arrived >= *(unsigned const *)target; }

static void barrier(void)
{
  unsigned target = arrived / DOMAINS * DOMAINS + DOMAINS;
  arrived++;
  wait_until(all_arrived, &target);
}

static void stop_here(void)
{
  stopped_domains++;
  wait_until(runs_again, NULL);
  stopped_domains--;
}

/* False: another domain stops all. */
static bool stop_all(void)
{
  if (stops) return false;
  stops = true;
  wait_until(all_others_stopped, NULL);
  return true;
}

static void darken_roots(unsigned d)
{
  marks_from[d] = marking_cycle;
  if (d == 0) {
    darken(&domains[d], block(GLOBAL));
    darken(&domains[d], block(POOL));
  }
  for (unsigned r = 0; r < REGISTERS; r++) darken(&domains[d], registers[d][r]);
}

/* In each domain, before it goes on. */
static void begin_cycle(unsigned d)
{
  running->patient = below(4) != 0;
  if (begun[d] != cycles) {
    begun[d] = cycles;
    unsweep(d);
    if (marking_cycle == cycles) darken_roots(d);
    barrier();
    oh_helper_domain_cycle_begins(&domains[d]);
    barrier();
  }
  if (marks_from[d] != marking_cycle) {
    darken_roots(d);
    oh_helper_domain_marking_begins(&domains[d]);
    barrier();
  }
  running->patient = true;
}

static bool is_marked(void) { return num_domains_to_mark == 0 && rounds_to_do == rounds_done; }

static void reach(bool *found, value v)
{
  if (v == NOTHING || found[number(v)]) return;
  found[number(v)] = true;
  for (unsigned i = 0; i < FIELDS; i++) reach(found, ((value_ptr)v)[i]);
}

/* All that can be reached is marked. */
static void check_blocks(void)
{
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
}

static void begin_anew(void);

/* All domains are stopped. */
static void next_cycle(void)
{
  if (cycles != 0) {
    check_blocks();
    for (unsigned d = 0; d < DOMAINS; d++) check_pools(d);
  }
  begin_anew();
}

static void begin_anew(void)
{
  if (cycles == most_cycles) {
    goes_on = false;
    return;
  }
  oh_settings.helper_stack = below(3) == 0 ? 2 * sizeof(mark_entry) : 0;
  oh_settings.helper = below(2) ? OH_SETTINGS_HELPER_ON : OH_SETTINGS_HELPER_AUTO;
  if (oh_helper.state == OH_HELPER_ENDED && enders == 0) oh_helper.state = OH_HELPER_ABSENT; /* another process */
  new_schedule();
  cycles++;
  running->patient = below(4) != 0;
  OH_CHECK(num_domains_to_mark == 0 && num_domains_to_sweep == 0);
  oh_helper_domain_between_cycles();
  running->patient = true;
  memset(marked, 0, sizeof marked);
  round_now = 1, rounds_done = 0, rounds_to_do = DOMAINS;
  num_domains_to_mark = num_domains_to_sweep = DOMAINS;
  caml_gc_phase = below(2) ? Phase_sweep_main : Phase_sweep_and_mark_main; /* as OCaml 5.5, or as 5.4 */
  if (marking_started()) marking_cycle = cycles;
  for (unsigned d = 0; d < DOMAINS; d++) {
    finalisers[d] = below(2) ? any_block() : NOTHING;
    keys[d] = any_block(), data[d] = any_block();
    waits_for_key[d] = true, finalised[d] = false, round_of[d] = 0;
    domains[d].marking_done = domains[d].sweeping_done = 0;
    registers[d][0] = any_block();
  }
  for (unsigned i = 0; i < BLOCKS; i++)
    for (unsigned f = 0; f < FIELDS; f++) heap[i][1 + f] = below(2) ? any_block() : NOTHING;
}

static unsigned count_pools(pool const *p, bool unswept)
{
  unsigned n = 0;
  for (; p != NULL; p = p->next, n++) OH_CHECK(!p->busy && !p->released && (unswept || !p->finalises));
  return n;
}

/* All domains are stopped, and the runtime shuts down: finalisers that have not run are those of unswept pools, of
   which none is lost. Another process begins. */
static void shut_down(void)
{
  caml_domain_state *leader = Caml_state;
  end_here();
  for (unsigned d = 0; d < DOMAINS; d++) {
    fiber_local = &domains[d];
    struct caml_heap_state *h = Caml_state->shared_heap;
    oh_sweeping_drain(h);
    unsigned n = 0, kept = 0;
    for (unsigned s = 0; s < NUM_SIZECLASSES; s++) {
      n += count_pools(h->avail_pools[s], false) + count_pools(h->full_pools[s], false);
      n += count_pools(h->unswept_avail_pools[s], true) + count_pools(h->unswept_full_pools[s], true);
      h->unswept_avail_pools[s] = h->unswept_full_pools[s] = NULL;
    }
    for (unsigned i = 0; i < POOLS; i++) kept += !pools[d][i].released;
    OH_CHECK(n == kept && !oh_sweeping_is_handed(h));
    domains[d].mark_stack->count = 0;
  }
  fiber_local = leader;
  oh_helper.counted = false;
  oh_helper.inbox_count = oh_helper.stack.count = oh_helper.deferred.count = oh_helper.own.count = 0;
  num_domains_to_mark = num_domains_to_sweep = 0;
  begin_anew();
}

/* All domains are stopped: the next phase, if this one is over. */
static void next_phase(void)
{
  switch (caml_gc_phase) {
    case Phase_sweep_main:
      if (num_domains_to_sweep != 0 && below(8) != 0) return;
      caml_gc_phase = Phase_sweep_and_mark_main;
      marking_cycle = cycles;
      return;
    case Phase_sweep_and_mark_main:
      if (is_marked() && num_domains_to_sweep == 0) caml_gc_phase = Phase_mark_final;
      return;
    case Phase_mark_final:
      if (is_marked() && finalised[0] && finalised[1]) next_cycle();
  }
}

static bool may_change_phase(void)
{
  if (caml_gc_phase == Phase_sweep_main) return num_domains_to_sweep == 0 || below(8) == 0;
  return is_marked() && (caml_gc_phase == Phase_mark_final || num_domains_to_sweep == 0);
}

static void act(unsigned d)
{
  running->patient = below(4) != 0;
  switch (below(16)) {
    case 0: case 1: case 2: case 3: case 4: mutate(d); break;
    case 5: case 6: case 7: allocate(d, below(NUM_SIZECLASSES)); break;
    case 8: slice(d, below(3) == 0 ? Slice_uninterruptible : Slice_interruptible); break;
    case 9: slice(d, Slice_opportunistic); break;
    case 10: case 11: case 12: slice(d, Slice_interruptible); break;
    case 13: case 14: yield(); break;
    case 15: if (below(60) == 0) end_here(); break;
  }
  running->patient = true;
}

static void run_domain(void)
{
  enum { FREE = 40, MOST = 4000 }; /* steps at random, and in all: then the cycle cannot be ended */
  unsigned d = number_of(Caml_state), cycle = 0, steps = 0;
  while (goes_on) {
    if (stops) stop_here();
    if (!goes_on) break;
    begin_cycle(d);
    if (cycle != cycles) cycle = cycles, steps = 0;
    OH_CHECK(steps < MOST);
    if (steps++ < FREE) act(d);
    else {
      slice(d, Slice_uninterruptible);
      yield();
    }
    if ((may_change_phase() || below(40) == 0) && stop_all()) {
      if (below(40) == 0) fork_child();
      if (below(300) == 0) shut_down();
      else next_phase();
      stops = false;
    }
  }
  running->exists = false;
  resume(fibers[0].exists || fibers[1].exists ? choose(true) : &program);
}

/* --- the program -------------------------------------------------------------------------------------------------- */

static void say_where(int number)
{
  (void)number;
  fprintf(stderr, "in cycle %u, at point %zu\n", cycles, points);
}

int main(int argc, char **argv)
{
  static struct mark_stack stacks[DOMAINS];
  static mark_entry entries[DOMAINS][64 * BLOCKS];
  if (argc != 3) return EXIT_FAILURE;
  setenv("OUTHEAP", "helper=on", 1);
  oh_start();
  signal(SIGABRT, say_where);
  char *p = mmap(NULL, 2 * OH_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  heap = (void *)OH_ROUND_UP((uintptr_t)p, OH_CHUNK);
  OH_CHECK(p != MAP_FAILED && oh_table_claim((uintptr_t)heap, OH_KIND_MAJOR));
  random_state = strtoull(argv[1], NULL, 10) * 2654435761u + 1;
  most_cycles = (unsigned)atol(argv[2]);
  for (unsigned d = 0; d < DOMAINS; d++) {
    stacks[d] = (struct mark_stack){ entries[d], 0, sizeof entries[d] / sizeof *entries[d] };
    domains[d] = (caml_domain_state){ 1, 1, &stacks[d], oh_sweeping_heap(sizeof(struct caml_heap_state)), 0, 0 };
    *domains[d].shared_heap = (struct caml_heap_state){ .owner = &domains[d] };
    for (unsigned r = 0; r < REGISTERS; r++) registers[d][r] = NOTHING;
  }
  goes_on = true;
  fiber_local = &domains[0];
  next_cycle();
  fiber_local = NULL;
  for (int d = 0; d < DOMAINS; d++) begin_fiber(d, run_domain, &domains[d]);
  begin_fiber(OUTSIDE, act_outside, NULL);
  resume(&fibers[0]);
  printf("%u cycles, %zu with the helper, %zu points, %zu switches, %u forks and %u children, %u ends, "
         "%zu pools swept, %zu blocks marked, %zu deferred, %zu entries given back, %zu pauses\n",
         cycles, oh_helper_counters.cycles, points, switches, forks, children, ends, oh_helper_counters.pools,
         oh_helper_counters.blocks, oh_helper_counters.deferred, oh_helper_counters.given,
         oh_helper_counters.backed_off);
  fflush(stdout);
  _exit(EXIT_SUCCESS);
}
