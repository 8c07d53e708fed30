/* SPDX-License-Identifier: MIT */
/* Domains: minor heaps. The text of one function is changed by domain.edits.

   Stock   reserves one range of addresses for the minor heaps of as many domains as there may be.
   Here    the range is in chunks of its own, so that the table knows it, and the part of a domain is reserved when the
           domain gets its minor heap. With the setting minor=adaptive the parts are larger than minor heaps are at
           first, and minor heaps grow and shrink in them (minor_size.h). */
#define _GNU_SOURCE /* as the unit does, which would be too late */
#include "prelude.h"
#include "hooks.h"
#include "base.h"
#include "following.h"
#include "keeper.h"
#include "os.h"
#include "minor_size.h"
#include "settings.h"
#include <caml/version.h>

static void *commit_minor_heap(void *start, uintnat bytes)
{
  void *result = oh_hooks_commit_minor_heap(start, bytes);
  if (result != NULL) oh_minor_size_is(Caml_state, Wsize_bsize(bytes));
  return result;
}

static void decommit_minor_heap(void *start, uintnat bytes)
{
  uintnat memory = Bsize_wsize(oh_minor_size_memory(Caml_state));
  oh_minor_size_is(Caml_state, 0);
  oh_hooks_purge_minor_heap(start, bytes > memory ? bytes : memory);
}

#define caml_mem_map(bytes, ...) oh_hooks_reserve_minor_heaps(bytes)
#define caml_mem_unmap(start, bytes) oh_hooks_release_minor_heaps(start, bytes)
#define caml_mem_commit(start, bytes) commit_minor_heap(start, bytes)
#define caml_mem_decommit(start, bytes) decommit_minor_heap(start, bytes)

static void prepare_minor_heaps(void);

/* Of shared_heap.c: adds up a domain's heap. All domains are stopped. */
void oh_shared_heap_survey(struct caml_heap_state *heap, struct oh_follow_heap *all);

#include <domain.c>

#if OCAML_VERSION >= 50300
#define DOMAINS caml_params->max_domains
#else
#define DOMAINS Max_domains
#endif

/* In the caller's domain, whose minor heap is empty: what allocate_minor_heap does, but the part that stays is not
   given back. */
static bool resize_minor_heap(asize_t words, bool keep)
{
  caml_domain_state *d = Caml_state;
  char *start = (char *)d->young_start;
  uintnat memory = Bsize_wsize(oh_minor_size_memory(d)), bytes = Bsize_wsize(words);
  check_minor_heap();
  if (words > caml_minor_heap_max_wsz) return false;
  if (bytes > memory && oh_hooks_commit_minor_heap(start + memory, bytes - memory) == NULL) return false;
  if (bytes < memory && !keep) oh_hooks_purge_minor_heap(start + bytes, memory - bytes);
  if (bytes > memory || !keep) oh_minor_size_is(d, words);
#ifdef DEBUG
  for (value *p = d->young_end; p < (value *)(start + bytes); p++) *(uintnat *)p = Debug_free_minor;
#endif
  caml_gc_log("minor heap: %zuk words instead of %zuk", (size_t)words / 1024, (size_t)d->minor_heap_wsz / 1024);
  d->minor_heap_wsz = words;
  d->young_end = d->young_ptr = d->young_start + words;
  d->young_trigger = d->young_start + words / 2;
#if OCAML_VERSION >= 50300
  caml_memprof_set_trigger(d);
#endif
  caml_reset_young_limit(d);
  check_minor_heap();
  return true;
}

/* All domains are stopped. */
static void survey(struct oh_follow_heap *all)
{
  for (uintnat i = 0; i < DOMAINS; i++)
    if (all_domains[i].interruptor.running) oh_shared_heap_survey(all_domains[i].state->shared_heap, all);
}

#if OCAML_VERSION >= 50300
/* The collection of an idle program. The keeper takes the lock of the only domain, as the backup thread of a domain
   does in a program with several: while nobody has it, all threads of the domain are in blocking sections, and what
   they left is what a collection needs. So the same holds as for a backup thread. In addition it runs no finaliser. */
#define IDLE_CYCLES 3 /* the one that runs; one that finds what is garbage; one that frees it */

static bool borrow(dom_internal *d)
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

static void give_back(dom_internal *d)
{
  caml_state = NULL;
  domain_self = NULL;
  caml_plat_unlock(&d->domain_lock);
}

/* What changes when the program has run. */
struct trace { value *young; intnat minor; uintnat cycles; };
static struct trace trace_of(caml_domain_state *d)
{
  return (struct trace){d->young_ptr, (intnat)d->stat_minor_words, caml_major_cycles_completed};
}
static bool is_same(struct trace a, struct trace b)
{
  return a.young == b.young && a.minor == b.minor && a.cycles == b.cycles;
}

static enum oh_keeper_found collect(uint64_t now)
{
  static struct trace last;
  static uint64_t since, next, cost; /* when it was seen to be idle; when to collect again; what this has cost */
  static uintnat until;              /* cycles */
  static size_t before;
  static bool collecting, done;
  dom_internal *d = &all_domains[0];
  if (!borrow(d)) return caml_domain_alone() ? OH_KEEPER_ACTIVE : OH_KEEPER_DONE;
  enum oh_keeper_found found = OH_KEEPER_ACTIVE;
  if (!is_same(last, trace_of(d->state))) {
    since = now;
    collecting = done = false;
  }
  else if (done) found = OH_KEEPER_DONE;
  else if (!collecting && caml_heap_size(d->state->shared_heap) < OH_FOLLOW_LEAST) found = OH_KEEPER_DONE;
  else if (!collecting && now - since >= oh_settings.idle && now >= next) {
    collecting = true;
    before = caml_heap_size(d->state->shared_heap);
    until = caml_major_cycles_completed + IDLE_CYCLES;
    cost = 0;
  }
  if (collecting) {
    oh_following_set_away(true);
    oh_following_idle_slice();
    oh_following_set_away(false);
    cost += oh_os_now() - now;
    found = OH_KEEPER_WORKING;
    if (caml_major_cycles_completed >= until) {
      bool useful = caml_heap_size(d->state->shared_heap) < before - before / 20;
      collecting = false;
      done = true;
      next = oh_settings.compact ? 0 : oh_os_now() + cost * OH_FOLLOW_SHARE * (useful ? 1 : 4);
      oh_follow_idle();
      found = OH_KEEPER_DONE;
    }
  }
  last = trace_of(d->state);
  give_back(d);
  if (found == OH_KEEPER_DONE && cost != 0) {
    cost = 0;
    oh_keeper_trim();
  }
  return found;
}
#endif

static void prepare_minor_heaps(void)
{
  uintnat domains = DOMAINS;
  oh_hooks_start();
  oh_following_start(survey);
#if OCAML_VERSION >= 50300
  oh_keeper_collect = collect;
#endif
  if (!oh_settings.minor_adaptive) return;
  uintnat most = caml_norm_minor_heap_size(oh_settings.minor_most);
  if (most > caml_minor_heap_max_wsz) {
    /* The addresses are asked for once more, in the same size; then their absence is an error. */
    uintnat bytes = Bsize_wsize(most) * domains;
    void *range = oh_hooks_reserve_minor_heaps(bytes);
    if (range != NULL) {
      oh_hooks_release_minor_heaps(range, bytes);
      caml_minor_heap_max_wsz = most;
    }
    else oh_log("minor=adaptive: no addresses for that; minor heaps do not grow beyond %zuk words",
                (size_t)caml_minor_heap_max_wsz / 1024);
  }
  oh_minor_size_start(domains, resize_minor_heap);
}
