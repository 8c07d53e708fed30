/* SPDX-License-Identifier: MIT */
/* Domains: minor heaps. The text of one function is changed by domain.edits.

   Stock   reserves one range of addresses for the minor heaps of as many domains as there may be.
   Here    the range is in chunks of its own, so that the table knows it, and the part of a domain is reserved when the
           domain gets its minor heap. With the setting minor=adaptive the parts are larger than minor heaps are at
           first, and minor heaps grow and shrink in them (minor_size.h).
   Also    after a slice of one of several domains, cycles end if memory is limited and more is used (cycle.h). */
#define _GNU_SOURCE /* as the unit does, which would be too late */
#include "prelude.h"
#include "hooks.h"
#include "base.h"
#include "clock.h"
#include "cycle.h"
#include "helper.h"
#include "reclaim.h"
#include "limit.h"
#include "minor_size.h"
#include "settings.h"
#include <caml/version.h>

static unsigned numbers; /* of domains: those from here on were never in use */

static void *commit_minor_heap(void *start, uintnat bytes)
{
  unsigned id = (unsigned)Caml_state->id, n = oh_load_relaxed(&numbers);
  while (n <= id && !oh_cas_seq_cst(&numbers, &n, id + 1)) {}
  void *result = oh_hooks_commit_minor_heap(start, bytes);
  if (result != NULL) oh_minor_size_is(Caml_state, Wsize_bsize(bytes));
  return result;
}

static void decommit_minor_heap(void *start, uintnat bytes)
{
  uintnat memory = Bsize_wsize(oh_minor_size_memory(Caml_state));
  oh_minor_size_is(Caml_state, 0);
  oh_pace_set_free((unsigned)Caml_state->id, 0); /* a domain that ends leaves its pools; another says it anew */
  oh_limit_leave((unsigned)Caml_state->id);
  oh_hooks_purge_minor_heap(start, bytes > memory ? bytes : memory);
}

#define caml_mem_map(bytes, ...) oh_hooks_reserve_minor_heaps(bytes)
#define caml_mem_unmap(start, bytes) oh_hooks_release_minor_heaps(start, bytes)
#define caml_mem_commit(start, bytes) commit_minor_heap(start, bytes)
#define caml_mem_decommit(start, bytes) decommit_minor_heap(start, bytes)

#define caml_major_collection_slice(n) ((caml_major_collection_slice)(n), oh_cycle_after_slice())

static void prepare_minor_heaps(void);

/* Of shared_heap.c: adds up a domain's heap. All domains are stopped. */
void oh_shared_heap_survey(struct caml_heap_state *heap, struct oh_pace_heap *all);

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
static void survey(struct oh_pace_heap *all)
{
  for (unsigned i = 0, n = oh_load_relaxed(&numbers); i < n; i++) {
    if (!all_domains[i].interruptor.running) {
      oh_pace_set_free(i, 0);
      continue;
    }
    struct caml_heap_state *heap = all_domains[i].state->shared_heap;
    oh_shared_heap_survey(heap, all);
    oh_cycle_note_free(all_domains[i].state, heap);
  }
}

#if OCAML_VERSION >= 50300
#include "idle.h"
#endif

static void prepare_minor_heaps(void)
{
  uintnat domains = DOMAINS;
  oh_hooks_start();
  oh_cycle_start(survey);
#if OCAML_VERSION >= 50300
  oh_reclaim_collect = oh_idle_collect;
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
