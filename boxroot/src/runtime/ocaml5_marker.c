/* SPDX-License-Identifier: MIT */
/* The collector of OCaml 5: what it asks for when it visits roots, how far its marker is, the marker's work on single
   values, and its pace. docs/reference/versions.md lists what is relied upon, in which version. */
#include "ocaml5_marker.h"
#if BXR_OCAML5 && !BOXROOT_CONSERVATIVE
#include "../pool.h"
#include <caml/gc.h>
#include <caml/major_gc.h>
#include <caml/minor_gc.h>
#include <caml/roots.h>
#include <caml/shared_heap.h>

#if defined(OCAML_VERSION_EXTRA)
_Static_assert(sizeof(OCAML_VERSION_EXTRA) == 1,
               "OCaml " OCAML_VERSION_STRING
               " is not the release of that number, which Boxroot was tested with: define BOXROOT_CONSERVATIVE as 1");
#endif

/* --- visits of roots ---------------------------------------------------------------------------------------------- */

void bxr_runtime_marker_scan(bxr_callbacks const *callbacks, unsigned id, bool young_only, bxr_visitor const *visitor)
{
  if (young_only) callbacks->scan_young(id, visitor);
  else if (visitor->action == (void (*)(void))&caml_darken) callbacks->start_cycle(id, visitor);
  else callbacks->scan_all(id, visitor);
}

#if OCAML_VERSION < 50500
/* An infix pointer points into a closure, and the header before it is one of the words of the block. The collector
   gives the block its new place, and lets the slot point into it, before it copies these words: it does that when all
   roots have been visited, or, if another domain found the block first, whenever that domain gets to it. Until then the
   word is unspecified. But pending deletions, finalisers and the marker can darken the value earlier, and read that
   word. So it is stored there first; the collector copies the same word later. The old place keeps it: only the block's
   own header and its first field are overwritten. The slot gets the new address last, since the marker of a domain that
   ends may be reading the pool at this moment. (Since 5.5, with ocaml/ocaml#14495, it copies the word in time.) */
__attribute__((noinline, cold))
static void visit_young_infix(bxr_visitor const *visitor, value v, uintptr_t *slot, header_t header)
{
  volatile value moved = v;
  ((scanning_action)visitor->action)(visitor->data, v, &moved);
  value new_place = moved;
  bxr_store_relaxed(Hp_val(new_place), header);
  bxr_store_release(slot, (uintptr_t)new_place);
}

void bxr_runtime_visit_young(bxr_visitor const *visitor, value v, uintptr_t *slot)
{
  header_t header = bxr_load_relaxed(Hp_val(v));
  if (BXR_UNLIKELY(Tag_hd(header) == Infix_tag)) visit_young_infix(visitor, v, slot, header);
  else ((scanning_action)visitor->action)(visitor->data, v, (volatile value *)slot);
}
#else
void bxr_runtime_visit_young(bxr_visitor const *visitor, value v, uintptr_t *slot)
{
  bxr_runtime_visit(visitor, v, slot);
}
#endif

/* --- marking ------------------------------------------------------------------------------------------------------ */

/* Up to OCaml 5.4 all domains mark their roots when a cycle starts. Since 5.5 a cycle starts with sweeping, and the
   roots are marked later, within a minor collection that the collector asks for: before that nothing may be darkened.
   The phase changes while the world is stopped. */
bool bxr_runtime_marking_has_started(void)
{
#if OCAML_VERSION >= 50500
  return caml_marking_started();
#else
  return true;
#endif
}

bool bxr_runtime_marking_done(void) { return !bxr_runtime_marking_has_started() || bxr_runtime_state()->marking_done; }
uintptr_t bxr_runtime_cycle(void) { return 2 * caml_major_cycles_completed + bxr_runtime_marking_has_started(); }
bool bxr_runtime_may_start_marking(void)
{
  return !bxr_runtime_marking_has_started() && bxr_runtime_state()->sweeping_done;
}

/* Clients keep an encoded exception (the low bits are 10) in a root between two steps; the GC must not, and cannot,
   come upon it there. */
static bool is_pointer(uintptr_t v) { return (v & (sizeof(value) - 1)) == 0; }

/* With Outheap's runtime a root may hold a pointer to memory where there is no header, and a pointer to a region must
   set the region's reach bit. Cost: a call for each root, with that runtime only. */
extern bool outheap_marker_follows(void const *pointer) __attribute__((weak));

static bool is_followed(value v) { return outheap_marker_follows == NULL || outheap_marker_follows((void const *)v); }

bool bxr_runtime_finish_marking(void)
{
  if (bxr_self() == NULL) return false;
#if OCAML_VERSION >= 50400
  if (!bxr_runtime_marking_done()) caml_finish_marking();
#endif
  /* OCaml 5.3 does not tell a program that still runs from one that has shut down, so nothing can be run here. */
  return bxr_runtime_marking_done();
}

/* caml_darken stores the header of a block with a plain store. That loses the change of tag when another domain
   forces a lazy value at that moment (ocaml/ocaml#14816, in versions up to 5.4). Here such a header is changed
   atomically, and the block's one field is darkened. */
static void darken_block(value v)
{
  for (;;) {
    header_t volatile *at = Hp_val(v);
    header_t header = bxr_load_relaxed(at);
    if (Tag_hd(header) == Infix_tag) {
      v -= Infix_offset_hd(header);
      continue;
    }
    if (Tag_hd(header) != Lazy_tag && Tag_hd(header) != Forcing_tag) break;
    do
      if (!Has_status_hd(header, caml_global_heap_state.UNMARKED)) return;
    while (!bxr_cas_acq_rel(at, &header, With_status_hd(header, caml_global_heap_state.MARKED)));
    v = (value)bxr_load_relaxed((uintptr_t *)v);
    if (!is_pointer((uintptr_t)v) || Is_young(v) || !is_followed(v)) return;
  }
  caml_darken(bxr_runtime_state(), v, NULL);
}

void bxr_runtime_darken(value v) { if (is_pointer((uintptr_t)v) && !Is_young(v) && is_followed(v)) darken_block(v); }

/* Another domain may write a field while this one looks at it, as it may while the runtime's marker does. caml_modify
   tells ThreadSanitizer that it is a plain write, so that races of OCaml programs are found; those with the collector
   are none, and the runtime does not instrument its marker. What the field held when marking began is kept by the
   writer's deletion barrier. */
#if defined(__clang__)
#if __has_feature(thread_sanitizer)
/* no_sanitize leaves atomic accesses instrumented */
#define WITHOUT_TSAN __attribute__((noinline, disable_sanitizer_instrumentation))
#endif
#elif defined(__SANITIZE_THREAD__)
#define WITHOUT_TSAN __attribute__((noinline, no_sanitize_thread))
#endif
#ifndef WITHOUT_TSAN
#define WITHOUT_TSAN
#endif

/* Whether marking the block is enough, since it holds no pointers. (caml_darken does not push such blocks either.) */
WITHOUT_TSAN static bool is_leaf(value v, header_t header)
{
  tag_t tag = Tag_hd(header);
  if (tag >= No_scan_tag) return true;
  if (tag >= Forcing_tag || tag == Cont_tag) return false; /* lazy values, continuations, closures, infix pointers */
  mlsize_t n = Wosize_hd(header);
  if (n > 8) return false;
  for (mlsize_t i = 0; i < n; i++)
    if (is_pointer(bxr_load_relaxed((uintptr_t *)v + i))) return false;
  return true;
}
_Static_assert(Forcing_tag < Cont_tag && Forcing_tag < Lazy_tag && Forcing_tag < Closure_tag && Forcing_tag < Infix_tag,
               "tags of plain blocks");

uint32_t bxr_runtime_darken_slots(uintptr_t const *slots, uint32_t n)
{
  /* 16: 170 ms for a full collection beside 5 million roots on 5.3.0, 32: 130, 64: 105, 128 and 256: no better */
  enum { AHEAD = 64 };
  uintptr_t const young = (uintptr_t)caml_minor_heaps_start, young_size = (uintptr_t)caml_minor_heaps_end - young;
  status const unmarked = caml_global_heap_state.UNMARKED, marked = caml_global_heap_state.MARKED;
  bool const marking = !bxr_runtime_state()->marking_done;
  uint32_t pushed = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (i + AHEAD < n) __builtin_prefetch((header_t *)slots[i + AHEAD] - 1);
    value v = (value)slots[i];
    if (!is_pointer(slots[i]) || slots[i] - young < young_size || !is_followed(v)) continue;
    header_t header = bxr_load_relaxed(Hp_val(v));
    if (!Has_status_hd(header, unmarked) && Tag_hd(header) != Infix_tag) continue;
    if (marking && is_leaf(v, header)) {
      bxr_store_relaxed(Hp_val(v), With_status_hd(header, marked));
      pushed += OCAML_VERSION >= 50500;
    } else {
      pushed++;
      darken_block(v);
    }
  }
  return pushed;
}

uintptr_t bxr_runtime_block_header(size_t words)
{
  return Make_header(words, 0, caml_global_heap_state.UNMARKED);
}

bool bxr_runtime_block_visited(uintptr_t header) { return !Has_status_hd(header, caml_global_heap_state.UNMARKED); }

bxr_minor_range bxr_runtime_minor_range(void)
{
  uintptr_t start = (uintptr_t)caml_minor_heaps_start, end = (uintptr_t)caml_minor_heaps_end;
  return (bxr_minor_range){ start, end - start };
}

/* --- pace --------------------------------------------------------------------------------------------------------- */

/* No header of the runtime declares it. */
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
   no darkening, of which the marker counts each. So the library shortens the chain in each minor collection, by the
   share that the new words are of those that are expected while the collector marks,
   G'' = H * 2 o / (3 (100 + o)) * 100 / (200 + o), but stops when it has had that many blocks to mark, about a
   millisecond's worth: the marker does these as well, only with a little more allocation in a cycle. (Words promoted in
   three cycles beside 400,000 roots: 2.6 million with 1,024 blocks at once, 2.25 with 65,536, 2.0 without a limit; 1.9
   when all roots are visited at once; 2.25 beside an array of the same values. Beside 5 million immediates the heap
   grows to 18 times that of a scan at once without these steps, to 1.3 times with them.) */
enum { MARKED_AT_ONCE = 16384 };

void bxr_runtime_pace_minor(bxr_callbacks const *callbacks)
{
  caml_domain_state *state = bxr_runtime_state();
  uintnat fresh = newly_allocated(state);
  if (bxr_runtime_marking_done()) return;
  double heap = heap_words(state), o = (double)caml_percent_free;
  double share = heap > 0 && o > 0 ? (double)fresh * 3 * (100 + o) * (200 + o) / (200 * o * heap) : 1;
  callbacks->advance_marking((unsigned)state->id, share < 1 ? share : 1, MARKED_AT_ONCE, true);
}

#else
/* The library darkens the roots of the snapshot in steps, one for each minor collection, outside the marker's budget:
   so the work that the collector does for a word that was allocated, the number of its cycles, and the heap that it
   allows are those of a program whose roots are scanned while the world is stopped at the start of the cycle
   (docs/decisions/0007-pacing.md).

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
  uint64_t pushes = (uint64_t)(heap / 128) + 1024;
  callbacks->advance_marking((unsigned)state->id, share < 1 ? share : 1, pushes, state->sweeping_done);
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
