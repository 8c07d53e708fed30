/* SPDX-License-Identifier: MIT */
/* Contact with the runtime of OCaml 5. */
#include <boxroot/config.h>
#if BXR_OCAML5
#include "runtime.h"
#include "atomic.h"
#include <caml/domain.h>
#include <caml/gc.h>
#include <caml/major_gc.h>
#include <caml/minor_gc.h>
#include <caml/misc.h>
#include <caml/roots.h>
#include <caml/shared_heap.h>

#ifdef Max_domains_max
_Static_assert(Max_domains_max <= BXR_MAX_DOMAINS, "a record for each identity of a domain");
#endif

/* Declared by no header of the runtime. */
#if OCAML_VERSION >= 50400
extern _Atomic uintnat caml_percent_free;
#else
extern uintnat caml_percent_free;
#endif

static bxr_callbacks const *callbacks; /* set once, before the hooks that use it */
static scan_roots_hook earlier_scan;
static caml_timing_hook earlier_end, earlier_minor_end;
static bool attached, scan_left, end_left, minor_end_left; /* *_left: wrapped by another library when we detached */

void bxr_visit(bxr_visitor const *visitor, value v, uintptr_t *slot)
{
  ((scanning_action)visitor->action)(visitor->data, v, (volatile value *)slot);
}

/* An infix pointer leads into a closure, and the header before it is one of the words of the block. The collector gives the block its new
   place, and lets the slot point into it, before it copies these words: that happens when all roots have been visited, or, if another
   domain found the block first, whenever that domain comes to it. Until then the word may be anything. But pending deletions, finalisers
   and the marker can darken the value before, and look at it. So it is put there first; what the collector copies later is the same word.
   In the old place it stays: only the block's own header and its first field are overwritten. The slot gets the new address last, since the
   marker of a domain that ends may be reading the pool at this moment. (Runtimes with ocaml/ocaml#14495 copy the word in time.) */
__attribute__((noinline, cold))
static void visit_young_infix(bxr_visitor const *visitor, value v, uintptr_t *slot, header_t header)
{
  volatile value moved = v;
  ((scanning_action)visitor->action)(visitor->data, v, &moved);
  value new_place = moved;
  bxr_store_relaxed(Hp_val(new_place), header);
  bxr_store_release(slot, (uintptr_t)new_place);
}

void bxr_visit_young(bxr_visitor const *visitor, value v, uintptr_t *slot)
{
  header_t header = bxr_load_relaxed(Hp_val(v));
  if (BXR_UNLIKELY(Tag_hd(header) == Infix_tag)) visit_young_infix(visitor, v, slot, header);
  else ((scanning_action)visitor->action)(visitor->data, v, (volatile value *)slot);
}

static void scan_hook(scanning_action action, scanning_action_flags flags, void *data, caml_domain_state *domain)
{
  if (earlier_scan != NULL) earlier_scan(action, flags, data, domain);
  if (!bxr_load_acquire(&attached)) return;
  bxr_visitor visitor = { (void (*)(void))action, data };
  unsigned id = (unsigned)domain->id;
  if ((flags & SCANNING_ONLY_YOUNG_VALUES) != 0) callbacks->minor(id, &visitor);
  else if (action == &caml_darken) callbacks->cycle_start(id, &visitor);
  else callbacks->all(id, &visitor);
}

static bool over; /* (atomic) */
bool bxr_runtime_over(void) { return bxr_load_acquire(&over); }

static void end_hook(void)
{
  if (caml_domain_alone()) bxr_store_release(&over, true);
  if (earlier_end != NULL) earlier_end();
  if (bxr_load_acquire(&attached)) callbacks->domain_end((unsigned)Caml_state->id);
}

/* The marker takes the slots it reads in pools, and the blocks it finds by them, for work that the collector's pace foresees. A scan of
   all roots at the start of the cycle does that part outside the budget; so with the marker the cycle would last longer, and the heap
   grow. To make up for it, a charge of some words for each slot is added to the work to be done. It is spread over the cycle as the
   collector spreads its own work, in proportion to allocation: a cycle expects G = heap * 2 o / (3 (100 + o)) words of it.
   Measured with 5 M roots, peak heap against a scan at the start: 1.51 without, 1.41 with a charge of 1, 1.24 with 3, 1.15 with 4; the
   99.9th percentile pause goes up from 1.4 to 1.7 times, the worst one stays. Where roots are few beside the heap, a charge of 4 makes
   for more cycles than there would be with the scan; 2 does not. */
static double charge(double words, double heap)
{
  double ratio = 4 * words / heap;
  return words * (2 + 2 * (ratio < 1 ? ratio : 1));
}

static void minor_end_hook(void)
{
  static uintnat charged_to[BXR_MAX_DOMAINS]; /* allocation since the last slice that was charged already; owned by the domain */
  if (earlier_minor_end != NULL) earlier_minor_end();
  if (!bxr_load_acquire(&attached) || !BOXROOT_PACING) return;
  uint64_t words = callbacks->marker_words((unsigned)Caml_state->id);
  if (words == 0) return;
  uintnat *charged = &charged_to[Caml_state->id];
  uintnat allocated = Caml_state->allocated_words;
  uintnat fresh = allocated >= *charged ? allocated - *charged : allocated;
  *charged = allocated;
  double heap = (double)caml_heap_size(Caml_state->shared_heap) / sizeof(value), o = (double)caml_percent_free;
  if (heap <= 0) return;
  double share = (double)fresh * 3 * (100 + o) / (2 * o * heap);
  if (share > 1) share = 1;
  Caml_state->major_work_done_between_slices -= (intnat)(share * charge((double)words, heap));
}

void bxr_runtime_attach(bxr_callbacks const *c)
{
  callbacks = c;
  bxr_store_release(&attached, true);
  if (!scan_left) earlier_scan = atomic_exchange(&caml_scan_roots_hook, scan_hook);
  if (!end_left) earlier_end = atomic_exchange(&caml_domain_terminated_hook, end_hook);
  if (!minor_end_left) earlier_minor_end = atomic_exchange(&caml_minor_gc_end_hook, minor_end_hook);
}

void bxr_runtime_detach(void)
{
  scan_roots_hook scan = scan_hook;
  caml_timing_hook end = end_hook, minor_end = minor_end_hook;
  bxr_store_release(&attached, false);
  scan_left = !atomic_compare_exchange_strong(&caml_scan_roots_hook, &scan, earlier_scan);
  end_left = !atomic_compare_exchange_strong(&caml_domain_terminated_hook, &end, earlier_end);
  minor_end_left = !atomic_compare_exchange_strong(&caml_minor_gc_end_hook, &minor_end, earlier_minor_end);
}

void bxr_runtime_check_lock(void) {}
unsigned bxr_runtime_domain(void) { return (unsigned)Caml_state->id; }
bool bxr_runtime_alone(void) { return caml_domain_alone(); }
bool bxr_runtime_leaving(void) { return caml_domain_is_terminating() && !caml_domain_alone(); }
bool bxr_runtime_marked(void) { return Caml_state->marking_done; }
uintptr_t bxr_runtime_cycle(void) { return caml_major_cycles_completed; }

/* Clients keep an encoded exception (the low bits are 10) in a root between two steps; the GC must not, and cannot, meet it there. */
static bool is_pointer(uintptr_t v) { return (v & (sizeof(value) - 1)) == 0; }

bool bxr_runtime_finish_marking(void)
{
  if (Caml_state_opt == NULL) return false;
#if OCAML_VERSION >= 50400
  caml_finish_marking();
#endif
  /* OCaml 5.3 does not tell a program that still runs from one that has shut down, so nothing can be run here. */
  return Caml_state->marking_done;
}

void bxr_runtime_darken(value v) { if (is_pointer((uintptr_t)v)) caml_darken(Caml_state, v, NULL); }

void bxr_runtime_darken_slots(uintptr_t const *slots, uint32_t n)
{
  enum { AHEAD = 12 };
  for (uint32_t i = 0; i < n; i++) {
    if (i + AHEAD < n) __builtin_prefetch((header_t *)slots[i + AHEAD] - 1);
    value v = (value)slots[i];
    if (!is_pointer(slots[i]) || Is_young(v)) continue;
    header_t hd = Hd_val(v);
    if (Has_status_hd(hd, caml_global_heap_state.UNMARKED) || Tag_hd(hd) == Infix_tag) caml_darken(Caml_state, v, NULL);
  }
}

uintptr_t bxr_runtime_block_header(size_t words)
{
  return Make_header(words, 0, caml_global_heap_state.UNMARKED);
}

bool bxr_runtime_skip_block(uintptr_t *header)
{
  if (!Has_status_hd(*header, caml_global_heap_state.UNMARKED)) return false;
  *header = With_status_hd(*header, caml_global_heap_state.MARKED);
  return true;
}

bxr_minor_range bxr_runtime_minor_range(void)
{
  uintptr_t start = (uintptr_t)caml_minor_heaps_start, end = (uintptr_t)caml_minor_heaps_end;
  return (bxr_minor_range){ start, end - start };
}

#endif
