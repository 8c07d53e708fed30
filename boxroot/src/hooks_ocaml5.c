/* SPDX-License-Identifier: MIT */
/* Contact with the runtime of OCaml 5: hooks, domains, and, unless BOXROOT_CONSERVATIVE (hooks_conservative.c), the collector.
   docs/versions.md lists what is relied upon, in which version. */
#include <boxroot/config.h>
#if BXR_OCAML5
#include "runtime.h"
#include "atomic.h"
#include <caml/domain.h>
#include <caml/misc.h>
#include <caml/roots.h>
#if !BOXROOT_CONSERVATIVE
#include <caml/gc.h>
#include <caml/major_gc.h>
#include <caml/minor_gc.h>
#include <caml/shared_heap.h>
#endif
#include <pthread.h>

#if defined(HAS_FULL_THREAD_VARIABLES)
#undef Caml_state
#define Caml_state ((caml_domain_state *)bxr_self()) /* the same word, read as the inline paths read it */
#endif

#if defined(Max_domains_max)
_Static_assert(Max_domains_max <= BXR_MAX_DOMAINS, "a record for each identity of a domain");
#elif defined(Max_domains)
_Static_assert(Max_domains <= BXR_MAX_DOMAINS, "a record for each identity of a domain");
#else
#error "This version of OCaml does not tell how many domains there can be"
#endif

#if !BOXROOT_CONSERVATIVE && defined(OCAML_VERSION_EXTRA)
_Static_assert(sizeof(OCAML_VERSION_EXTRA) == 1,
  "OCaml " OCAML_VERSION_STRING " is not the release of that number, which Boxroot was tested with: define BOXROOT_CONSERVATIVE as 1");
#endif

#if !BOXROOT_CONSERVATIVE
/* Declared by no header of the runtime. */
#if OCAML_VERSION >= 50400
extern _Atomic uintnat caml_percent_free;
#else
extern uintnat caml_percent_free;
#endif
#endif

static bxr_callbacks const *callbacks; /* set once, before the hooks that use it */
static scan_roots_hook earlier_scan;
static caml_timing_hook earlier_end;
#if !BOXROOT_CONSERVATIVE
static caml_timing_hook earlier_minor_end;
static bool minor_end_left;
/* Up to 5.3 the work of forced collections counts for the collector's pace afterwards; since 5.4 the pace is reset after them. */
#define PACE_COUNTS_FORCED_WORK (OCAML_VERSION < 50400)
#if PACE_COUNTS_FORCED_WORK
static caml_timing_hook earlier_slice;
static bool slice_left;
#endif
#endif
static bool attached, scan_left, end_left; /* *_left: wrapped by another library when we detached */

void bxr_visit(bxr_visitor const *visitor, value v, uintptr_t *slot)
{
  ((scanning_action)visitor->action)(visitor->data, v, (volatile value *)slot);
}

#if !BOXROOT_CONSERVATIVE
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
#endif

static void scan_hook(scanning_action action, scanning_action_flags flags, void *data, caml_domain_state *domain)
{
  scan_roots_hook earlier = bxr_load_relaxed(&earlier_scan);
  if (earlier != NULL) earlier(action, flags, data, domain);
  if (!bxr_load_acquire(&attached)) return;
  bxr_visitor visitor = { (void (*)(void))action, data };
  unsigned id = (unsigned)domain->id;
#if BOXROOT_CONSERVATIVE
  bxr_conservative_scan(callbacks, id, (flags & SCANNING_ONLY_YOUNG_VALUES) != 0, &visitor);
#else
  if ((flags & SCANNING_ONLY_YOUNG_VALUES) != 0) callbacks->minor(id, &visitor);
  else if (action == &caml_darken) callbacks->cycle_start(id, &visitor);
  else callbacks->all(id, &visitor);
#endif
}

/* --- the end of a domain ------------------------------------------------------------------------------------------------- */

/* The runtime gives the domain lock up at the end of a domain, but Caml_state stays set on its thread: destructors of thread-local data run
   with the state of nobody, or of the next domain that gets the same record. So this thread is made to forget it first of all:
   with glibc destructors registered by __cxa_thread_atexit_impl (as those of C++ and Rust are) run before those of POSIX keys, and the
   last registered first. Elsewhere a POSIX key does it, before those of keys that are made later, as a rule; and slow paths
   find out by themselves (bxr_runtime_self). */
extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));
static pthread_key_t end_of_thread;
static bool have_key;
static BXR_THREAD_LOCAL bool leaving BXR_TLS_MODEL;   /* this thread's domain has begun to end */
static BXR_THREAD_LOCAL int leaving_id BXR_TLS_MODEL; /* which one it was */

static void forget_domain(void *unused)
{
  (void)unused;
#if defined(HAS_FULL_THREAD_VARIABLES)
  caml_state = NULL;
#endif
}

static void forget_domain_at_exit(void)
{
  if (__cxa_thread_atexit_impl != NULL && __cxa_thread_atexit_impl(forget_domain, NULL, &__dso_handle) == 0) return;
  if (have_key) (void)pthread_setspecific(end_of_thread, &leaving);
}

/* It still has the lock as long as it is the same domain, and has not ended. */
static __attribute__((noinline)) void *self_of_leaving(void *self)
{
  return self != NULL && ((caml_domain_state *)self)->unique_id == leaving_id && caml_domain_is_terminating() ? self : NULL;
}

void *bxr_runtime_self(void)
{
  void *self = bxr_self();
  return BXR_LIKELY(!leaving) ? self : self_of_leaving(self);
}

static bool over; /* (atomic) */
bool bxr_runtime_over(void) { return bxr_load_acquire(&over); }

static void end_hook(void)
{
  bool alone = caml_domain_alone();
  if (alone) bxr_store_release(&over, true);
  if (earlier_end != NULL) earlier_end();
  if (bxr_load_acquire(&attached)) callbacks->domain_end((unsigned)Caml_state->id);
  if (alone) return;
  leaving_id = Caml_state->unique_id;
  leaving = true;
  forget_domain_at_exit();
}

#if !BOXROOT_CONSERVATIVE
/* --- pace ------------------------------------------------------------------------------------------------------------------ */

/* The library darkens the roots of the snapshot in steps, one after each minor collection, outside the marker's budget: so the work that the
   collector does for a word that was allocated, the number of its cycles, and the heap that it allows are those of a program
   whose roots are scanned while the world is stopped at the start of the cycle.
   When: a cycle expects that G = H * 2 o / (3 (100 + o)) words are allocated in it, for a heap of H words and a space overhead of o. Of its
   work, H (sweeping) + H * 100 / (100 + o) (marking), sweeping comes first, that is, while the first (100 + o) / (200 + o) of G are
   allocated: G' = H * 2 o / (3 (200 + o)) words. The roots are spread evenly over these, so that they lengthen the slices that sweep
   and not those that mark. What is left when marking begins early, as in a forced collection, the marker reads within its budget.
   Values that have to be put on the mark stack, which is emptied only by marking, are put there up to half the size from which
   the runtime compresses it (a 32nd of the heap's bytes, 16 bytes an entry). */
static void minor_end_hook(void)
{
  static uintnat allocated[BXR_MAX_DOMAINS]; /* words ever, at the last call; owned by the domain */
  if (earlier_minor_end != NULL) earlier_minor_end();
  if (!bxr_load_acquire(&attached)) return;
  if (leaving) forget_domain_at_exit(); /* destructors that finalisers registered meanwhile come after this one, too */
  if (!BOXROOT_PACING) return;
  unsigned id = (unsigned)Caml_state->id;
  uintnat now = (uintnat)Caml_state->stat_major_words + Caml_state->allocated_words;
  uintnat fresh = now >= allocated[id] ? now - allocated[id] : now; /* less: another domain has the identity now */
  allocated[id] = now;
  double heap = (double)caml_heap_size(Caml_state->shared_heap) / sizeof(value), o = (double)caml_percent_free;
  double share = heap > 0 && o > 0 ? (double)fresh * 3 * (200 + o) / (2 * o * heap) : 1;
  callbacks->advance(id, share < 1 ? share : 1, (uint64_t)(heap / 128) + 1024, Caml_state->sweeping_done);
}

#if PACE_COUNTS_FORCED_WORK
/* A slice of which a number of words is asked for, as those of a forced collection (ten million each): the roots that the marker would read in
   it would be counted as work that the collector has done ahead of the program, and it would rest until so much has been allocated. So the
   share of the roots that these words are of the heap is darkened here. */
static void slice_begin_hook(void)
{
  if (earlier_slice != NULL) earlier_slice();
  if (!BOXROOT_PACING || Caml_state->slice_budget <= 0 || !bxr_load_acquire(&attached)) return;
  double heap = (double)caml_heap_size(Caml_state->shared_heap) / sizeof(value);
  double share = heap > 0 ? (double)Caml_state->slice_budget / heap : 1;
  callbacks->advance((unsigned)Caml_state->id, share < 1 ? share : 1, (uint64_t)(heap / 128) + 1024, Caml_state->sweeping_done);
}
#endif

#endif

/* The runtime reads the timing hooks with a relaxed load before it calls them. With the fence, what attach wrote before it published the
   hook is seen behind it. (The scanning hook is read by a sequentially consistent load.) */
static void enter_end_hook(void) { bxr_fence_acquire(); end_hook(); }
#if !BOXROOT_CONSERVATIVE
static void enter_minor_end_hook(void) { bxr_fence_acquire(); minor_end_hook(); }
#if PACE_COUNTS_FORCED_WORK
static void enter_slice_hook(void) { bxr_fence_acquire(); slice_begin_hook(); }
#endif
#endif

/* Puts `ours` in a hook. Whoever finds it there finds *earlier set: it is written before, and the hook is published with release. While
   another library changes the hook at the same time, we look again. */
#define PUT_IN_FRONT(hook, ours, earlier, type) \
  do { \
    type before = bxr_hook_load_relaxed(hook); \
    do bxr_store_relaxed(earlier, before); \
    while (!bxr_hook_cas_release(hook, &before, ours)); \
  } while (0)

void bxr_runtime_attach(bxr_callbacks const *c)
{
  callbacks = c;
  if (!have_key) have_key = pthread_key_create(&end_of_thread, forget_domain) == 0;
  bxr_store_release(&attached, true);
  if (!scan_left) PUT_IN_FRONT(&caml_scan_roots_hook, scan_hook, &earlier_scan, scan_roots_hook);
  if (!end_left) PUT_IN_FRONT(&caml_domain_terminated_hook, enter_end_hook, &earlier_end, caml_timing_hook);
#if !BOXROOT_CONSERVATIVE
  if (!minor_end_left) PUT_IN_FRONT(&caml_minor_gc_end_hook, enter_minor_end_hook, &earlier_minor_end, caml_timing_hook);
#if PACE_COUNTS_FORCED_WORK
  if (!slice_left) PUT_IN_FRONT(&caml_major_slice_begin_hook, enter_slice_hook, &earlier_slice, caml_timing_hook);
#endif
#endif
}

/* A hook that another library has wrapped stays, and goes on calling the earlier one. That is never touched while ours can be reached: not
   here, where a thread may be on its way through our hook, nor when the library attaches again with the hook in its place. */
void bxr_runtime_detach(void)
{
  scan_roots_hook scan = scan_hook;
  caml_timing_hook end = enter_end_hook;
  bxr_store_release(&attached, false);
  scan_left = !bxr_hook_cas_release(&caml_scan_roots_hook, &scan, bxr_load_relaxed(&earlier_scan));
  end_left = !bxr_hook_cas_release(&caml_domain_terminated_hook, &end, bxr_load_relaxed(&earlier_end));
#if !BOXROOT_CONSERVATIVE
  caml_timing_hook minor_end = enter_minor_end_hook;
  minor_end_left = !bxr_hook_cas_release(&caml_minor_gc_end_hook, &minor_end, bxr_load_relaxed(&earlier_minor_end));
#if PACE_COUNTS_FORCED_WORK
  caml_timing_hook slice = enter_slice_hook;
  slice_left = !bxr_hook_cas_release(&caml_major_slice_begin_hook, &slice, bxr_load_relaxed(&earlier_slice));
#endif
#endif
}

void bxr_runtime_check_lock(void) {}
unsigned bxr_runtime_domain(void) { return (unsigned)Caml_state->id; }
bool bxr_runtime_alone(void) { return caml_domain_alone(); }
bool bxr_runtime_leaving(void) { return caml_domain_is_terminating() && !caml_domain_alone(); }

#if !BOXROOT_CONSERVATIVE
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

/* caml_darken stores the header of a block without regard to others who change it. That loses the change of tag when another domain
   forces a lazy value at that moment (ocaml/ocaml#14816, in versions up to 5.4). Here such a header is changed atomically, and the one field
   darkened. */
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
    if (!is_pointer((uintptr_t)v) || Is_young(v)) return;
  }
  caml_darken(Caml_state, v, NULL);
}

void bxr_runtime_darken(value v) { if (is_pointer((uintptr_t)v) && !Is_young(v)) darken_block(v); }

/* Whether marking the block is all there is to do: nothing in it leads further. (Such as this caml_darken does not put on the stack either.) */
static bool is_leaf(value v, header_t header)
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
_Static_assert(Forcing_tag < Cont_tag && Forcing_tag < Lazy_tag && Forcing_tag < Closure_tag && Forcing_tag < Infix_tag, "tags of plain blocks");

uint32_t bxr_runtime_darken_slots(uintptr_t const *slots, uint32_t n)
{
  enum { AHEAD = 64 }; /* 16: 170 ms for a full collection beside 5 million roots on 5.3.0, 32: 130, 64: 105, 128 and 256: no better */
  uintptr_t const young = (uintptr_t)caml_minor_heaps_start, young_size = (uintptr_t)caml_minor_heaps_end - young;
  status const unmarked = caml_global_heap_state.UNMARKED, marked = caml_global_heap_state.MARKED;
  bool const marking = !Caml_state->marking_done;
  uint32_t pushed = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (i + AHEAD < n) __builtin_prefetch((header_t *)slots[i + AHEAD] - 1);
    value v = (value)slots[i];
    if (!is_pointer(slots[i]) || slots[i] - young < young_size) continue;
    header_t header = bxr_load_relaxed(Hp_val(v));
    if (!Has_status_hd(header, unmarked) && Tag_hd(header) != Infix_tag) continue;
    if (marking && is_leaf(v, header)) {
      bxr_store_relaxed(Hp_val(v), With_status_hd(header, marked));
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

#endif /* !BOXROOT_CONSERVATIVE */
#endif
