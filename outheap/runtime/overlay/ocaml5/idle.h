/* SPDX-License-Identifier: MIT */
/* Part of domain.c: an idle program is collected at the reclaim thread's request. OCaml 5.3 and later.

   *One domain.* The reclaim thread takes its lock, as the backup thread of a domain does in a program with several:
   while nobody has it, all threads of the domain are in blocking sections, and what they left is what a collection
   needs. So the same holds as for a backup thread. In addition it runs no finaliser.

   *Several.* There are backup threads. When all domains are in blocking sections, the reclaim thread asks for a slice
   in each: it starts an asynchronous stop-the-world section, as the runtime itself does to get slices from all domains,
   but without being a domain. Backup threads answer, do the slices, and end phases and cycles; they run finalisers, as
   they do beside a domain that allocates. The reclaim thread has no domain's lock for longer than a look, and waits for
   nobody: so a thread that forks, or ends the reclaim thread, may have such a lock, and no thread that collects waits
   for it.

   *Ticks.* A program that wakes now and then, and does next to nothing, is never idle for long, and its running time is
   too short for cycles by time. So one that has used less than a fiftieth of a processor, over three times memory.idle,
   is collected as an idle one, though it runs in between: each slice is one that the domain could do itself at that
   point. That comes once in a minute at most, rarer when it is of no use, and leaves what is free to the reclaim
   thread's other rules, since the program may need it again, unless it is silent for memory.idle then. It ends when the
   program needs more of the processor.

   *How often.* A silence is collected once. It is collected after memory.idle if the last collection is longer ago than
   OH_PACE_SHARE times what that cost, or four times that if it was of no use. Otherwise the silence itself must show
   that it is worth it, by lasting for half as long again, and for OH_IDLE_SILENCE times that cost. So what was
   dropped last goes back soon, whatever came before, and a program that is never silent for so long pays
   OH_PACE_SHARE.

   All of this is the reclaim thread's, but for `oh_cycle_requested`. */
#ifndef OH_IDLE_H
#define OH_IDLE_H

#define OH_IDLE_CYCLES 3 /* the one that runs; one that finds what is garbage; one that frees it */
#define OH_IDLE_SILENCE 2
#define OH_IDLE_CALM 3   /* times memory.idle, after which it is known whether a program is calm */
#define OH_IDLE_CALM_SHARE 50 /* one part in so many of a processor: such a program uses less, */
#define OH_IDLE_CALM_LEAST ((uint64_t)20000000) /* or so many nanoseconds while it is collected */
#define OH_IDLE_CALM_REST ((uint64_t)60000000000) /* nanoseconds from one collection to the next, */
#define OH_IDLE_CALM_USELESS 4 /* which double so often */
#define OH_IDLE_BUSY_MOST ((uint64_t)2000000000) /* nanoseconds that an answer may take */

/* What changes when the program has run, with the size of its heaps. */
struct oh_idle_look { uint64_t trace; size_t heap; uintnat cycles; };

static struct {
  uint64_t trace;       /* of the last look */
  uint64_t since, next; /* when it was seen to be idle; when to collect again */
  uint64_t used, cost;  /* processor time of the process when this collection began; of the last one, nanoseconds */
  uint64_t asked;       /* when all domains were last seen to have answered */
  size_t before;        /* bytes, when it began */
  uintnat until;        /* cycles */
  bool collecting, done;
  bool collected;       /* in this silence */
  bool keeps;           /* was it collected while it ran now and then, and what is free was left to it? */
} oh_idle;

static struct {
  uint64_t began, used; /* since then it has been looked at; what the program had used */
  uint64_t next;        /* when to collect again */
  unsigned useless;     /* collections in a row */
  bool is;
} oh_idle_calm;

static void oh_idle_calm_begin(uint64_t now)
{
  oh_idle_calm.began = now;
  oh_idle_calm.used = oh_reclaim_others();
}

/* The first time, and in a child of a fork, which counts anew, nothing is known. */
static bool oh_idle_is_calm(uint64_t now)
{
  uint64_t since = now - oh_idle_calm.began, used = oh_idle_calm.used;
  if (since < OH_IDLE_CALM * oh_settings.idle) return oh_idle_calm.is;
  bool first = oh_idle_calm.began == 0;
  oh_idle_calm_begin(now);
  oh_idle_calm.is = !first && oh_idle_calm.used >= used
                      && oh_idle_calm.used - used < since / OH_IDLE_CALM_SHARE;
  return oh_idle_calm.is;
}

/* It has run while it was collected: does it need the processor? */
static bool oh_idle_is_busy(uint64_t now)
{
  uint64_t most = OH_IDLE_CALM_LEAST + (now - oh_idle_calm.began) / OH_IDLE_CALM_SHARE;
  if (oh_load_relaxed(&oh_cycle_wakes) && oh_reclaim_others() <= oh_idle_calm.used + most) return false;
  oh_idle_calm.is = false;
  oh_idle_calm_begin(now);
  return true;
}

static void oh_idle_add(struct oh_idle_look *l, dom_internal *d)
{
  caml_domain_state *state = d->state;
  l->trace = (l->trace * 31 + (uintptr_t)state->young_ptr) * 31 + (uint64_t)state->stat_minor_words;
  l->trace = l->trace * 31 + d->interruptor.unique_id;
  l->heap += caml_heap_size(state->shared_heap);
}

/* Has the program been idle for long enough? */
static bool oh_idle_is_time(uint64_t now)
{
  uint64_t silent = now - oh_idle.since, idle = oh_settings.idle, enough = oh_idle.cost * OH_IDLE_SILENCE;
  if (now >= oh_idle.next) return silent >= idle;
  return !oh_idle.collected && silent >= idle + idle / 2 && silent >= enough;
}

/* It is not being collected: is it to be? */
static enum oh_reclaim_found oh_idle_decide(struct oh_idle_look const *l, uint64_t now)
{
  bool ran = l->trace != oh_idle.trace, calm = oh_idle_is_calm(now);
  if (ran) {
    oh_idle.trace = l->trace;
    oh_idle.since = now;
    oh_idle.done = oh_idle.collected = false;
    if (!calm || now < oh_idle_calm.next || l->heap < OH_PACE_LEAST || oh_pace_may_share())
      return OH_RECLAIM_ACTIVE;
    oh_idle_calm_begin(now);
  }
  else {
    if (oh_idle.keeps) { /* it is silent after all */
      if (now - oh_idle.since < oh_settings.idle) return OH_RECLAIM_ACTIVE;
      oh_idle.keeps = false;
      oh_reclaim_trim();
    }
    if (oh_idle.done || l->heap < OH_PACE_LEAST || oh_pace_may_share()) return OH_RECLAIM_DONE;
    if (!oh_idle_is_time(now)) return OH_RECLAIM_ACTIVE;
  }
  oh_store_relaxed(&oh_cycle_wakes, ran);
  oh_idle.collecting = true;
  oh_idle.asked = now;
  oh_idle.used = oh_clock_used();
  oh_idle.before = l->heap;
  oh_idle.until = l->cycles + OH_IDLE_CYCLES;
  return OH_RECLAIM_WORKING;
}

/* The last cycle has ended. Where only a part of the pools could be emptied, it goes on later. */
static enum oh_reclaim_found oh_idle_end(struct oh_idle_look const *l, uint64_t now)
{
  bool useful = l->heap < oh_idle.before - oh_idle.before / 20;
  oh_idle.collecting = false;
  oh_idle.collected = true;
  oh_idle.cost = oh_clock_used() - oh_idle.used;
  oh_idle.trace = l->trace;
  oh_idle.done = !(useful && oh_pace_more());
  uint64_t rest = oh_idle.cost * OH_PACE_SHARE * (useful ? 1 : 4);
  oh_pace_count_idle();
  oh_idle.next = oh_settings.compact ? 0 : now + rest;
  if (!oh_load_relaxed(&oh_cycle_wakes)) return OH_RECLAIM_DONE;
  oh_idle.keeps = true;
  oh_idle_calm.useless = useful ? 0 : oh_idle_calm.useless + (oh_idle_calm.useless < OH_IDLE_CALM_USELESS);
  uint64_t least = OH_IDLE_CALM_REST << oh_idle_calm.useless;
  oh_idle_calm.next = oh_settings.compact ? 0 : now + (rest > least ? rest : least);
  oh_idle_calm_begin(now);
  return OH_RECLAIM_ACTIVE; /* nothing is trimmed */
}

/* --- one domain --------------------------------------------------------------------------------------------------- */

static bool oh_idle_borrow(dom_internal *d)
{
  if (!caml_plat_try_lock(&d->domain_lock)) return false;
  if (!caml_domain_alone() || !d->interruptor.running) {
    caml_plat_unlock(&d->domain_lock);
    return false;
  }
  domain_self = d;
  caml_state = d->state;
  return true;
}

static void oh_idle_give_back(dom_internal *d)
{
  caml_state = NULL;
  domain_self = NULL;
  caml_plat_unlock(&d->domain_lock);
}

static struct oh_idle_look oh_idle_look_at(dom_internal *d)
{
  struct oh_idle_look l = { .trace = caml_major_cycles_completed, .cycles = caml_major_cycles_completed };
  oh_idle_add(&l, d);
  return l;
}

static enum oh_reclaim_found oh_idle_collect_one(dom_internal *d, uint64_t now)
{
  struct oh_idle_look l = oh_idle_look_at(d);
  if (oh_idle.collecting && l.trace != oh_idle.trace && oh_idle_is_busy(now)) oh_idle.collecting = false;
  if (oh_pace_may_share()) oh_idle.collecting = false;
  enum oh_reclaim_found found = oh_idle.collecting ? OH_RECLAIM_WORKING : oh_idle_decide(&l, now);
  if (found != OH_RECLAIM_WORKING) return found;
  oh_cycle_set_borrowed(true);
  oh_cycle_idle_slice();
  oh_cycle_set_borrowed(false);
  l = oh_idle_look_at(d);
  oh_idle.trace = l.trace;
  return l.cycles < oh_idle.until ? OH_RECLAIM_WORKING : oh_idle_end(&l, oh_clock_now());
}

/* --- several domains ---------------------------------------------------------------------------------------------- */

#if OCAML_VERSION >= 50500
#define OH_IDLE_DOMAINS stw_domains.active_domains
#else
#define OH_IDLE_DOMAINS stw_domains.participating_domains
#endif

enum oh_idle_state {
  OH_IDLE_RUNS,  /* a domain is not in a blocking section */
  OH_IDLE_BUSY,  /* all are, and some thread acts for one */
  OH_IDLE_STILL
};

/* With the lock of all domains: no section begins, and no domain starts or ends. */
static enum oh_idle_state oh_idle_look_at_all(struct oh_idle_look *l)
{
  for (int i = 0; i < OH_IDLE_DOMAINS; i++)
    if (atomic_load_acquire(&stw_domains.domains[i]->backup_thread_msg) != BT_IN_BLOCKING_SECTION)
      return OH_IDLE_RUNS;
  if (atomic_load_acquire(&stw_leader) != 0 || stw_requests_suspended != 0) return OH_IDLE_BUSY;
  *l = (struct oh_idle_look){ .trace = caml_major_cycles_completed, .cycles = caml_major_cycles_completed };
  for (int i = 0; i < OH_IDLE_DOMAINS; i++) {
    dom_internal *d = stw_domains.domains[i];
    if (!caml_plat_try_lock(&d->domain_lock)) return OH_IDLE_BUSY;
    oh_idle_add(l, d);
    caml_plat_unlock(&d->domain_lock);
  }
  return OH_IDLE_STILL;
}

static void oh_idle_run_request(caml_domain_state *d, void *unused, int n, caml_domain_state **all)
{
  (void)unused, (void)n, (void)all;
  oh_cycle_request_slice(d);
}

/* With the lock of all domains, and no section under way. The last domain that has answered ends the section. */
static void oh_idle_request_slices(void)
{
  int n = OH_IDLE_DOMAINS;
  oh_pace_count_request();
  atomic_store_release(&stw_leader, (uintnat)stw_domains.domains[0]); /* all that matters is that it is not 0 */
  stw_request.enter_spin_callback = NULL;
  stw_request.enter_spin_data = NULL;
  stw_request.callback = &oh_idle_run_request;
  stw_request.data = NULL;
  stw_request.num_domains = n;
  atomic_store_release(&stw_request.num_domains_still_processing, (uintnat)n);
  for (int i = 0; i < n; i++) stw_request.participating[i] = stw_domains.domains[i]->state;
  for (int i = 0; i < n; i++) caml_send_interrupt(&stw_domains.domains[i]->interruptor);
}

static void oh_idle_stop(uint64_t now)
{
  oh_idle.collecting = false;
  oh_idle.since = now;
  oh_store_relaxed(&oh_cycle_requested, false);
}

static enum oh_reclaim_found oh_idle_collect_several(uint64_t now)
{
  struct oh_idle_look l;
  if (!caml_plat_try_lock(&all_domains_lock)) return oh_idle.collecting ? OH_RECLAIM_REQUESTED : OH_RECLAIM_ACTIVE;
  enum oh_idle_state state = oh_idle_look_at_all(&l);
  enum oh_reclaim_found found = OH_RECLAIM_WORKING;
  if (state == OH_IDLE_STILL) {
    oh_idle.asked = now;
    if (!oh_idle.collecting) found = oh_idle_decide(&l, now);
    else if (l.cycles >= oh_idle.until) found = oh_idle_end(&l, now);
    if (found == OH_RECLAIM_WORKING) {
      oh_store_relaxed(&oh_cycle_requested, true);
      oh_idle_request_slices();
    }
    else oh_store_relaxed(&oh_cycle_requested, false);
  }
  else if (!oh_idle.collecting || state == OH_IDLE_RUNS || now - oh_idle.asked > OH_IDLE_BUSY_MOST) {
    oh_idle_stop(now);
    found = OH_RECLAIM_ACTIVE;
  }
  caml_plat_unlock(&all_domains_lock);
  return found == OH_RECLAIM_WORKING ? OH_RECLAIM_REQUESTED : found;
}

/* --- the reclaim thread calls
   --------------------------------------------------------------------------------------------- */

static enum oh_reclaim_found oh_idle_collect(uint64_t now)
{
  if (now == 0) return oh_idle_stop(0), OH_RECLAIM_DONE; /* it ends */
  dom_internal *d = &all_domains[0];
  enum oh_reclaim_found found = OH_RECLAIM_ACTIVE;
  bool collected = oh_idle.collecting;
  if (oh_idle_borrow(d)) {
    oh_store_relaxed(&oh_cycle_requested, false);
    found = oh_idle_collect_one(d, now);
    oh_idle_give_back(d);
  }
  else if (!caml_domain_alone()) found = oh_idle_collect_several(now);
  if (collected && found == OH_RECLAIM_DONE) {
    oh_reclaim_trim();
    if (!oh_idle.done) found = OH_RECLAIM_ACTIVE; /* there will be more to do */
  }
  return found;
}

#endif
