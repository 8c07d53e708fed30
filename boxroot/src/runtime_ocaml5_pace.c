/* SPDX-License-Identifier: MIT */
#include "runtime_ocaml5_pace.h"
#if BXR_OCAML5 && !BOXROOT_CONSERVATIVE
#include "pool.h"
#include <caml/major_gc.h>
#include <caml/shared_heap.h>

/* Declared by no header of the runtime. */
#if OCAML_VERSION >= 50400
extern _Atomic uintnat caml_percent_free;
#else
extern uintnat caml_percent_free;
#endif

static double heap_words(caml_domain_state *state)
{
  return (double)caml_heap_size(state->shared_heap) / sizeof(value);
}

/* Words that have come to the major heap since the last call. */
static uintnat newly_allocated(caml_domain_state *state)
{
  static uintnat allocated[BXR_MAX_DOMAINS]; /* ever, at the last call; owned by the domain */
  uintnat words = (uintnat)state->stat_major_words + state->allocated_words, *last = &allocated[state->id];
  uintnat fresh = words >= *last ? words - *last : words; /* less: another domain has the identity */
  *last = words;
  return fresh;
}

#if !BXR_RUNTIME_PACES_SLICES
/* Since OCaml 5.5 the collector counts what is darkened outside its slices as work that is done, so a scan of all roots
   at the start of marking is within its budget, as what the marker reads in pools is. One thing is not: slots that need
   no darkening, of which the marker counts each. For the sake of programs with many of them the library shortens the
   chain in each minor collection, by the share that the new words are of those that are expected while the collector
   marks, G'' = H * 2 o / (3 (100 + o)) * 100 / (200 + o), but stops when it has had that many blocks to mark: they are
   as well left to the marker. */
enum { MARKED_AT_ONCE = 1024 };

void bxr_runtime_pace_minor(bxr_callbacks const *callbacks)
{
  caml_domain_state *state = bxr_runtime_state();
  uintnat fresh = newly_allocated(state);
  if (bxr_runtime_marking_done()) return;
  double heap = heap_words(state), o = (double)caml_percent_free;
  double share = heap > 0 && o > 0 ? (double)fresh * 3 * (100 + o) * (200 + o) / (200 * o * heap) : 1;
  callbacks->advance((unsigned)state->id, share < 1 ? share : 1, MARKED_AT_ONCE, true);
}

#else
/* The library darkens the roots of the snapshot in steps, one for each minor collection, outside the marker's budget:
   so the work that the collector does for a word that was allocated, the number of its cycles, and the heap that it
   allows are those of a program whose roots are scanned while the world is stopped at the start of the cycle.
   When: a cycle expects that G = H * 2 o / (3 (100 + o)) words are allocated in it, for a heap of H words and a space
   overhead of o. Of its work, H (sweeping) + H * 100 / (100 + o) (marking), sweeping comes first, that is, while the
   first (100 + o) / (200 + o) of G are allocated: G' = H * 2 o / (3 (200 + o)) words. The roots are spread evenly over
   these, so that they lengthen the slices that sweep and not those that mark. What is left when marking begins early,
   as in a forced collection, the marker reads within its budget. Values that have to be put on the mark stack, which is
   emptied only by marking, are put there up to half the size from which the runtime compresses it (a 32nd of the heap's
   bytes, 16 bytes an entry).
   Where in the program: the runtime has two slices for each minor collection, one right after it and one when half of
   the minor heap is used again. Two fifths of a step are made at the end of the minor collection, and the rest at the
   beginning of the latter slice, which makes the two pauses about equal. Where that slice does not come (minor
   collections that the program asks for, or another domain) the rest is made at the end of the next minor
   collection. */
#define SHARE_AT_MINOR 0.4
static void darken_share(bxr_callbacks const *callbacks, caml_domain_state *state, double share, double heap)
{
  callbacks->advance((unsigned)state->id, share < 1 ? share : 1, (uint64_t)(heap / 128) + 1024, state->sweeping_done);
}

static double due[BXR_MAX_DOMAINS]; /* the share of the roots to be darkened next; owned by the domain */

void bxr_runtime_pace_minor(bxr_callbacks const *callbacks)
{
  caml_domain_state *state = bxr_runtime_state();
  unsigned id = (unsigned)state->id;
  uintnat fresh = newly_allocated(state);
  double heap = heap_words(state), o = (double)caml_percent_free;
  double share = heap > 0 && o > 0 ? (double)fresh * 3 * (200 + o) / (2 * o * heap) : 1;
  double now_due = due[id] + share * SHARE_AT_MINOR;
  due[id] = share * (1 - SHARE_AT_MINOR);
  darken_share(callbacks, state, now_due, heap);
}

/* Up to 5.3 the work of forced collections counts for the collector's pace afterwards; since 5.4 the pace is reset
   after them. In a slice for which a number of words is asked, as those of a forced collection (ten million each), the
   roots that the marker would read would be counted as work that the collector has done ahead of the program, and it
   would rest until so much has been allocated. So the share of the roots that these words are of the heap is darkened
   here. Not in idle domains, which mark 512 words at a time while they wait for others to stop: too few for a pool. */
static double forced_share(caml_domain_state *state, double heap)
{
  if (OCAML_VERSION >= 50400 || state->slice_budget < (intnat)BXR_CAPACITY) return 0;
  return heap > 0 ? (double)state->slice_budget / heap : 1;
}

/* Whether half of the minor heap has been used since the last minor collection: the runtime then moves the trigger to
   the end, and has its slice. Slices of a domain that waits for others come before or after that, when nothing is
   due. */
static bool is_half_way(caml_domain_state *state) { return state->young_trigger == state->young_start; }

void bxr_runtime_pace_slice(bxr_callbacks const *callbacks)
{
  caml_domain_state *state = bxr_runtime_state();
  unsigned id = (unsigned)state->id;
  double heap = heap_words(state), share = forced_share(state, heap);
  if (is_half_way(state)) {
    share += due[id];
    due[id] = 0;
  }
  if (share > 0) darken_share(callbacks, state, share, heap);
}
#endif
#endif
