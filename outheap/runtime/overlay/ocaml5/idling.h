/* SPDX-License-Identifier: MIT */
/* Part of domain.c: an idle program is collected at the keeper's request. OCaml 5.3 and later.

   *One domain.* The keeper takes its lock, as the backup thread of a domain does in a program with several: while
   nobody has it, all threads of the domain are in blocking sections, and what they left is what a collection needs. So
   the same holds as for a backup thread. In addition it runs no finaliser.

   *Several.* There are backup threads. When all domains are in blocking sections, the keeper asks for a slice in each:
   it starts an asynchronous stop-the-world section, as the runtime itself does to get slices from all domains, but
   without being a domain. Backup threads answer, do the slices, and end phases and cycles; they run finalisers, as
   they do beside a domain that allocates. The keeper has no domain's lock for longer than a look, and waits for nobody:
   so a thread that forks, or ends the keeper, may have such a lock, and no thread that collects waits for it.

   *Ticks.* A program that wakes now and then, and does next to nothing, is never idle for long, and its running time is
   too short for cycles by time. So one that has used less than a fiftieth of a processor, over three times memory.idle,
   is collected as an idle one, though it runs in between: each slice is one that the domain could do itself at that
   point. That comes once in a minute at most, rarer when it is of no use, and leaves what is free to the keeper's other
   rules, since the program may need it again, unless it is silent for memory.idle then. It ends when the program needs
   more of the processor.

   *How often.* A silence is collected once. It is collected after memory.idle if the last collection is longer ago than
   OH_FOLLOW_SHARE times what that cost, or four times that if it was of no use. Otherwise the silence itself must show
   that it is worth it, by lasting for half as long again, and for OH_IDLING_SILENCE times that cost. So what was
   dropped last goes back soon, whatever came before, and a program that is never silent for so long pays
   OH_FOLLOW_SHARE.

   All of this is the keeper's, but for `oh_following_asks`. */
#ifndef OH_IDLING_H
#define OH_IDLING_H

#define OH_IDLING_CYCLES 3 /* the one that runs; one that finds what is garbage; one that frees it */
#define OH_IDLING_SILENCE 2
#define OH_IDLING_CALM 3   /* times memory.idle, after which it is known whether a program is calm */
#define OH_IDLING_CALM_SHARE 50 /* one part in so many of a processor: such a program uses less, */
#define OH_IDLING_CALM_LEAST ((uint64_t)20000000) /* or so many nanoseconds while it is collected */
#define OH_IDLING_CALM_REST ((uint64_t)60000000000) /* nanoseconds from one collection to the next, */
#define OH_IDLING_CALM_USELESS 4 /* which double so often */
#define OH_IDLING_BUSY_MOST ((uint64_t)2000000000) /* nanoseconds that an answer may take */

/* What changes when the program has run, with the size of its heaps. */
struct oh_idling_look { uint64_t trace; size_t heap; uintnat cycles; };

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
} oh_idling;

static struct {
  uint64_t began, used; /* since then it has been looked at; what the program had used */
  uint64_t next;        /* when to collect again */
  unsigned useless;     /* collections in a row */
  bool is;
} oh_idling_calm;

static void oh_idling_calm_begin(uint64_t now)
{
  oh_idling_calm.began = now;
  oh_idling_calm.used = oh_keeper_others();
}

/* The first time, and in a child of a fork, which counts anew, nothing is known. */
static bool oh_idling_is_calm(uint64_t now)
{
  uint64_t since = now - oh_idling_calm.began, used = oh_idling_calm.used;
  if (since < OH_IDLING_CALM * oh_settings.idle) return oh_idling_calm.is;
  bool first = oh_idling_calm.began == 0;
  oh_idling_calm_begin(now);
  oh_idling_calm.is = !first && oh_idling_calm.used >= used
                      && oh_idling_calm.used - used < since / OH_IDLING_CALM_SHARE;
  return oh_idling_calm.is;
}

/* It has run while it was collected: does it need the processor? */
static bool oh_idling_is_busy(uint64_t now)
{
  uint64_t most = OH_IDLING_CALM_LEAST + (now - oh_idling_calm.began) / OH_IDLING_CALM_SHARE;
  if (oh_load_relaxed(&oh_following_ticks) && oh_keeper_others() <= oh_idling_calm.used + most) return false;
  oh_idling_calm.is = false;
  oh_idling_calm_begin(now);
  return true;
}

static void oh_idling_add(struct oh_idling_look *l, dom_internal *d)
{
  caml_domain_state *state = d->state;
  l->trace = (l->trace * 31 + (uintptr_t)state->young_ptr) * 31 + (uint64_t)state->stat_minor_words;
  l->trace = l->trace * 31 + d->interruptor.unique_id;
  l->heap += caml_heap_size(state->shared_heap);
}

/* Has the program been idle for long enough? */
static bool oh_idling_is_time(uint64_t now)
{
  uint64_t silent = now - oh_idling.since, idle = oh_settings.idle, enough = oh_idling.cost * OH_IDLING_SILENCE;
  if (now >= oh_idling.next) return silent >= idle;
  return !oh_idling.collected && silent >= idle + idle / 2 && silent >= enough;
}

/* It is not being collected: is it to be? */
static enum oh_keeper_found oh_idling_decide(struct oh_idling_look const *l, uint64_t now)
{
  bool ran = l->trace != oh_idling.trace, calm = oh_idling_is_calm(now);
  if (ran) {
    oh_idling.trace = l->trace;
    oh_idling.since = now;
    oh_idling.done = oh_idling.collected = false;
    if (!calm || now < oh_idling_calm.next || l->heap < OH_FOLLOW_LEAST || oh_follow_may_share())
      return OH_KEEPER_ACTIVE;
    oh_idling_calm_begin(now);
  }
  else {
    if (oh_idling.keeps) { /* it is silent after all */
      if (now - oh_idling.since < oh_settings.idle) return OH_KEEPER_ACTIVE;
      oh_idling.keeps = false;
      oh_keeper_trim();
    }
    if (oh_idling.done || l->heap < OH_FOLLOW_LEAST || oh_follow_may_share()) return OH_KEEPER_DONE;
    if (!oh_idling_is_time(now)) return OH_KEEPER_ACTIVE;
  }
  oh_store_relaxed(&oh_following_ticks, ran);
  oh_idling.collecting = true;
  oh_idling.asked = now;
  oh_idling.used = oh_clock_used();
  oh_idling.before = l->heap;
  oh_idling.until = l->cycles + OH_IDLING_CYCLES;
  return OH_KEEPER_WORKING;
}

/* The last cycle has ended. Where only a part of the pools could be emptied, it goes on later. */
static enum oh_keeper_found oh_idling_end(struct oh_idling_look const *l, uint64_t now)
{
  bool useful = l->heap < oh_idling.before - oh_idling.before / 20;
  oh_idling.collecting = false;
  oh_idling.collected = true;
  oh_idling.cost = oh_clock_used() - oh_idling.used;
  oh_idling.trace = l->trace;
  oh_idling.done = !(useful && oh_follow_more());
  uint64_t rest = oh_idling.cost * OH_FOLLOW_SHARE * (useful ? 1 : 4);
  oh_follow_idle();
  oh_idling.next = oh_settings.compact ? 0 : now + rest;
  if (!oh_load_relaxed(&oh_following_ticks)) return OH_KEEPER_DONE;
  oh_idling.keeps = true;
  oh_idling_calm.useless = useful ? 0 : oh_idling_calm.useless + (oh_idling_calm.useless < OH_IDLING_CALM_USELESS);
  uint64_t least = OH_IDLING_CALM_REST << oh_idling_calm.useless;
  oh_idling_calm.next = oh_settings.compact ? 0 : now + (rest > least ? rest : least);
  oh_idling_calm_begin(now);
  return OH_KEEPER_ACTIVE; /* nothing is trimmed */
}

/* --- one domain --------------------------------------------------------------------------------------------------- */

static bool oh_idling_borrow(dom_internal *d)
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

static void oh_idling_give_back(dom_internal *d)
{
  caml_state = NULL;
  domain_self = NULL;
  caml_plat_unlock(&d->domain_lock);
}

static struct oh_idling_look oh_idling_look_at(dom_internal *d)
{
  struct oh_idling_look l = { .trace = caml_major_cycles_completed, .cycles = caml_major_cycles_completed };
  oh_idling_add(&l, d);
  return l;
}

static enum oh_keeper_found oh_idling_collect_one(dom_internal *d, uint64_t now)
{
  struct oh_idling_look l = oh_idling_look_at(d);
  if (oh_idling.collecting && l.trace != oh_idling.trace && oh_idling_is_busy(now)) oh_idling.collecting = false;
  if (oh_follow_may_share()) oh_idling.collecting = false;
  enum oh_keeper_found found = oh_idling.collecting ? OH_KEEPER_WORKING : oh_idling_decide(&l, now);
  if (found != OH_KEEPER_WORKING) return found;
  oh_following_set_away(true);
  oh_following_idle_slice();
  oh_following_set_away(false);
  l = oh_idling_look_at(d);
  oh_idling.trace = l.trace;
  return l.cycles < oh_idling.until ? OH_KEEPER_WORKING : oh_idling_end(&l, oh_clock_now());
}

/* --- several domains ---------------------------------------------------------------------------------------------- */

#if OCAML_VERSION >= 50500
#define OH_IDLING_DOMAINS stw_domains.active_domains
#else
#define OH_IDLING_DOMAINS stw_domains.participating_domains
#endif

enum oh_idling_state {
  OH_IDLING_RUNS,  /* a domain is not in a blocking section */
  OH_IDLING_BUSY,  /* all are, and some thread acts for one */
  OH_IDLING_STILL
};

/* With the lock of all domains: no section begins, and no domain starts or ends. */
static enum oh_idling_state oh_idling_look_at_all(struct oh_idling_look *l)
{
  for (int i = 0; i < OH_IDLING_DOMAINS; i++)
    if (atomic_load_acquire(&stw_domains.domains[i]->backup_thread_msg) != BT_IN_BLOCKING_SECTION)
      return OH_IDLING_RUNS;
  if (atomic_load_acquire(&stw_leader) != 0 || stw_requests_suspended != 0) return OH_IDLING_BUSY;
  *l = (struct oh_idling_look){ .trace = caml_major_cycles_completed, .cycles = caml_major_cycles_completed };
  for (int i = 0; i < OH_IDLING_DOMAINS; i++) {
    dom_internal *d = stw_domains.domains[i];
    if (!caml_plat_try_lock(&d->domain_lock)) return OH_IDLING_BUSY;
    oh_idling_add(l, d);
    caml_plat_unlock(&d->domain_lock);
  }
  return OH_IDLING_STILL;
}

static void oh_idling_answer(caml_domain_state *d, void *unused, int n, caml_domain_state **all)
{
  (void)unused, (void)n, (void)all;
  oh_following_asked(d);
}

/* With the lock of all domains, and no section under way. The last domain that has answered ends the section. */
static void oh_idling_ask(void)
{
  int n = OH_IDLING_DOMAINS;
  oh_follow_ask();
  atomic_store_release(&stw_leader, (uintnat)stw_domains.domains[0]); /* all that matters is that it is not 0 */
  stw_request.enter_spin_callback = NULL;
  stw_request.enter_spin_data = NULL;
  stw_request.callback = &oh_idling_answer;
  stw_request.data = NULL;
  stw_request.num_domains = n;
  atomic_store_release(&stw_request.num_domains_still_processing, (uintnat)n);
  for (int i = 0; i < n; i++) stw_request.participating[i] = stw_domains.domains[i]->state;
  for (int i = 0; i < n; i++) caml_send_interrupt(&stw_domains.domains[i]->interruptor);
}

static void oh_idling_stop(uint64_t now)
{
  oh_idling.collecting = false;
  oh_idling.since = now;
  oh_store_relaxed(&oh_following_asks, false);
}

static enum oh_keeper_found oh_idling_collect_several(uint64_t now)
{
  struct oh_idling_look l;
  if (!caml_plat_try_lock(&all_domains_lock)) return oh_idling.collecting ? OH_KEEPER_ASKING : OH_KEEPER_ACTIVE;
  enum oh_idling_state state = oh_idling_look_at_all(&l);
  enum oh_keeper_found found = OH_KEEPER_WORKING;
  if (state == OH_IDLING_STILL) {
    oh_idling.asked = now;
    if (!oh_idling.collecting) found = oh_idling_decide(&l, now);
    else if (l.cycles >= oh_idling.until) found = oh_idling_end(&l, now);
    if (found == OH_KEEPER_WORKING) {
      oh_store_relaxed(&oh_following_asks, true);
      oh_idling_ask();
    }
    else oh_store_relaxed(&oh_following_asks, false);
  }
  else if (!oh_idling.collecting || state == OH_IDLING_RUNS || now - oh_idling.asked > OH_IDLING_BUSY_MOST) {
    oh_idling_stop(now);
    found = OH_KEEPER_ACTIVE;
  }
  caml_plat_unlock(&all_domains_lock);
  return found == OH_KEEPER_WORKING ? OH_KEEPER_ASKING : found;
}

/* --- the keeper calls --------------------------------------------------------------------------------------------- */

static enum oh_keeper_found oh_idling_collect(uint64_t now)
{
  if (now == 0) return oh_idling_stop(0), OH_KEEPER_DONE; /* it ends */
  dom_internal *d = &all_domains[0];
  enum oh_keeper_found found = OH_KEEPER_ACTIVE;
  bool collected = oh_idling.collecting;
  if (oh_idling_borrow(d)) {
    oh_store_relaxed(&oh_following_asks, false);
    found = oh_idling_collect_one(d, now);
    oh_idling_give_back(d);
  }
  else if (!caml_domain_alone()) found = oh_idling_collect_several(now);
  if (collected && found == OH_KEEPER_DONE) {
    oh_keeper_trim();
    if (!oh_idling.done) found = OH_KEEPER_ACTIVE; /* there will be more to do */
  }
  return found;
}

#endif
