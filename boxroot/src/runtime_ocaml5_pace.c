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

/* The library darkens the roots of the snapshot in steps, one after each minor collection, outside the marker's budget:
   so the work that the collector does for a word that was allocated, the number of its cycles, and the heap that it
   allows are those of a program whose roots are scanned while the world is stopped at the start of the cycle.
   When: a cycle expects that G = H * 2 o / (3 (100 + o)) words are allocated in it, for a heap of H words and a space
   overhead of o. Of its work, H (sweeping) + H * 100 / (100 + o) (marking), sweeping comes first, that is, while the
   first (100 + o) / (200 + o) of G are allocated: G' = H * 2 o / (3 (200 + o)) words. The roots are spread evenly over
   these, so that they lengthen the slices that sweep and not those that mark. What is left when marking begins early,
   as in a forced collection, the marker reads within its budget. Values that have to be put on the mark stack, which is
   emptied only by marking, are put there up to half the size from which the runtime compresses it (a 32nd of the heap's
   bytes, 16 bytes an entry). */
static void darken_share(bxr_callbacks const *callbacks, caml_domain_state *state, double share, double heap)
{
  callbacks->advance((unsigned)state->id, share < 1 ? share : 1, (uint64_t)(heap / 128) + 1024, state->sweeping_done);
}

static double heap_words(caml_domain_state *state)
{
  return (double)caml_heap_size(state->shared_heap) / sizeof(value);
}

void bxr_runtime_pace_step(bxr_callbacks const *callbacks)
{
  static uintnat allocated[BXR_MAX_DOMAINS]; /* words ever, at the last call; owned by the domain */
  caml_domain_state *state = bxr_runtime_state();
  unsigned id = (unsigned)state->id;
  uintnat now = (uintnat)state->stat_major_words + state->allocated_words;
  uintnat fresh = now >= allocated[id] ? now - allocated[id] : now; /* less: another domain has the identity now */
  allocated[id] = now;
  double heap = heap_words(state), o = (double)caml_percent_free;
  darken_share(callbacks, state, heap > 0 && o > 0 ? (double)fresh * 3 * (200 + o) / (2 * o * heap) : 1, heap);
}

#if BXR_PACE_COUNTS_FORCED_WORK
/* A slice for which a number of words is asked, as those of a forced collection (ten million each): the roots that the
   marker would read in it would be counted as work that the collector has done ahead of the program, and it would rest
   until so much has been allocated. So the share of the roots that these words are of the heap is darkened here. */
void bxr_runtime_pace_slice(bxr_callbacks const *callbacks)
{
  caml_domain_state *state = bxr_runtime_state();
  /* Idle domains mark 512 words at a time while they wait for others to stop: too few for a pool. */
  if (state->slice_budget < (intnat)BXR_CAPACITY) return;
  double heap = heap_words(state);
  darken_share(callbacks, state, heap > 0 ? (double)state->slice_budget / heap : 1, heap);
}
#endif
#endif
