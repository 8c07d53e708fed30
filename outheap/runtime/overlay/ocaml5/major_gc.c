/* SPDX-License-Identifier: MIT */
/* The marker, and ephemerons.

   Stock   follows every word with a clear low bit that is not young. That is Is_markable(v):
           `Is_block(v) && !Is_young(v)`; Is_young compares with the bounds of the minor heaps.
   Here    the second test is a load from the table, which also tells foreign pointers and static data. The loop over
           blocks is another one (mark_loop.h); in flavours for comparison or counting it is the runtime's.
   Stock   reads the headers of ephemerons' keys (Tag_val, is_unmarked).
   Here    a foreign key is alive.
   Stock   malloc gives large blocks back to the system when they are swept, or not at all.
   Here    what stays free for a cycle goes back between steps of marking (block.h).
   Stock   cycles come by allocation only, and compact when asked to.
   Here    by time as well, and when that is worth it (pace.h).
   Stock   compresses a mark stack that is full at a 32nd of the heap or more, which costs as much as marking does in
           heaps of gigabytes without locality.
   Here    at an eighth: mark_stack_share.
   Also    between two cycles, and when marking begins, regions are told (region.h). Where global roots are darkened,
           tracked regions that are roots are reached. Words of these that wait are part of a domain's marking, as its
           mark stack is. It is said how long slices take (minor_size.h). */
#define _GNU_SOURCE /* for sched_yield and the like, as units of the runtime do */
#include "prelude.h"
#include <caml/globroots.h>
#include <caml/major_gc.h>
#include <caml/version.h>
#include "block.h"
#include "cycle.h"
#include "limit.h"
#include "minor_size.h"
#include "os.h"
#include "pool.h"
#include "region.h"
#include "mark_counters.h"
#include "sweeping.h"
#include "tracked.h"
#include "weak.h"

#ifndef OH_STOCK_MARKING /* for comparison only: the allocator without the table; foreign pointers are followed */
#undef Is_young
#define Is_young(v) (!oh_pointer_is_markable((uintptr_t)(v)))
#endif
#if OH_COUNT
static inline int is_block_counted(value v) { return oh_mark_counters_count_word((uintptr_t)v), (v & 1) == 0; }
static inline int is_markable_counted(value v)
{
  if ((v & 1) || oh_pointer_is_markable((uintptr_t)v)) return 1;
  return oh_mark_counters_count_other((uintptr_t)v), 0;
}
#undef Is_block
#define Is_block(v) is_block_counted(v)
#undef Is_young
#define Is_young(v) (!is_markable_counted(v))
#endif
#if OH_COUNT || defined(OH_STOCK_MARKING)
#define is_markable_field(v) Is_markable(v)
#else
#define is_markable_field(v) (((v) & 1) == 0 && oh_pointer_is_markable_by((uintptr_t)(v), OH_REGION_BY_BLOCK))
#endif

#undef Tag_val
#define Tag_val(v) oh_prelude_tag(v)
#define is_unmarked(v) (oh_pointer_is_value((uintptr_t)(v)) && (is_unmarked)(v))

#define caml_scan_global_roots(f, data) (caml_scan_global_roots(f, data), oh_track_roots())

/* The part of the heap from which on a mark stack that is full is compressed instead of growing. `stock`: that of the
   runtime, which from OCaml 5.5 on OCAMLRUNPARAM can change; that is kept, and so it is where memory is limited. */
enum { OH_MARK_STACK_SHARE = 8, OH_MARK_STACK_SHARE_OF_STOCK = 32 };
static uintnat mark_stack_share(uintnat stock)
{
  return stock == OH_MARK_STACK_SHARE_OF_STOCK && oh_limit_bytes == 0 ? OH_MARK_STACK_SHARE : stock;
}
#define mark_stack_bound(heap) ((heap) / mark_stack_share(OH_MARK_STACK_SHARE_OF_STOCK)) /* before OCaml 5.5 */

/* Between two cycles, in each domain, whose mark stack is empty. */
static void shrink_long_mark_stack(caml_domain_state *d);

struct mark_stack;
static intnat oh_mark_loop(struct mark_stack *stk, intnat budget);

/* The helper (helper_thread.h, helper_domain.h), a thread that sweeps and marks. */
static void oh_helper_domain_between_cycles(void);
static void oh_helper_domain_cycle_begins(caml_domain_state *d);
static void oh_helper_domain_marking_begins(caml_domain_state *d);
static intnat oh_helper_domain_sweep(intnat budget, int mode);
static bool oh_helper_domain_has_swept(int mode);
static uintnat oh_helper_domain_percent(uintnat percent) __attribute__((unused)); /* not with OCaml 5.1 and 5.3 */
static void oh_helper_domain_slice(caml_domain_state *d, int mode);
static intnat oh_helper_domain_mark(intnat budget, int mode);

/* Between two cycles, while all domains are stopped. Up to OCaml 5.4 marking begins there, too. */
static void cycle_ended_stopped(uintnat swept)
{
  oh_region_cycle();
#if OCAML_VERSION < 50500
  oh_region_mark();
#endif
  oh_helper_domain_between_cycles();
  oh_cycle_ended(swept);
}

/* In one domain, when all run again after the end of a cycle. */
static void cycle_ended_running(void)
{
  oh_region_cycled();
  oh_block_age();
  if (oh_limit_bytes != 0 && oh_limit_wants_memory()) {
    oh_pool_trim(1);
    oh_block_trim();
  }
}

static intnat ephe_sweep(caml_domain_state *domain_state, intnat budget); /* for oh_weak_leave: below it in 5.3 */
#include <major_gc.c>

/* What the stack, and what was compressed of it, took in a heap that was larger goes back. A stack that is full below
   the bound is doubled, so one that has more than twice the bound is too long by now. */
#define MARK_STACK_KEPT ((uintnat)1 << 20)

/* Whole system pages of what is about to be freed: malloc may keep them, and another arena than the program's has them
   if the reclaim thread marked. */
static void purge_inside(void *start, uintnat bytes)
{
  uintptr_t page = oh_os_page_size(), from = ((uintptr_t)start + page - 1) & ~(page - 1);
  uintptr_t to = ((uintptr_t)start + bytes) & ~(page - 1);
  if (from < to) (void)oh_os_purge((void *)from, to - from);
}

static void shrink_long_mark_stack(caml_domain_state *d)
{
  struct mark_stack *s = d->mark_stack;
  uintnat most = 2 * caml_heap_size(d->shared_heap) / mark_stack_share(OH_MARK_STACK_SHARE_OF_STOCK);
  CAMLassert(s->count == 0);
  if (most < MARK_STACK_KEPT) most = MARK_STACK_KEPT;
  if (s->size * sizeof(mark_entry) > most) {
    purge_inside(s->stack + MARK_STACK_INIT_SIZE, (s->size - MARK_STACK_INIT_SIZE) * sizeof(mark_entry));
    mark_entry *shorter = caml_stat_resize_noexc(s->stack, MARK_STACK_INIT_SIZE * sizeof(mark_entry));
    if (shorter != NULL) {
      s->stack = shorter;
      s->size = MARK_STACK_INIT_SIZE;
    }
  }
  uintnat compressed = s->compressed_stack.size * sizeof(struct addrmap_entry);
  if (compressed > most) {
    purge_inside(s->compressed_stack.entries, compressed);
    caml_addrmap_clear(&s->compressed_stack);
    s->compressed_stack_iter = caml_addrmap_iterator(&s->compressed_stack);
  }
}

#if OH_COUNT || defined OH_STOCK_MARKING
static intnat oh_mark_loop(struct mark_stack *stk, intnat budget) { return do_some_marking(stk, budget); }
#else
/* The last two are those of OCaml 5.2 and later. */
#ifndef CAML_TSAN_ANNOTATE_HAPPENS_AFTER
#define CAML_TSAN_ANNOTATE_HAPPENS_AFTER(address) ((void)0)
#endif
#if !defined WITH_THREAD_SANITIZER
#define volatile_load_uninstrumented(p) (*(value const volatile *)(p))
#endif
#include "mark_loop.h"
#endif
#include "helper_domain.h"

/* The stack is not empty then: when roots have been darkened, a domain with an empty one has nothing to mark. What is
   pushed is no work, and too long to be compressed when the stack is full. */
bool oh_tracked_more_to_mark(void)
{
  enum { WORDS = 2 * BITS_PER_WORD };
  static value nothing[WORDS] = { [0 ... WORDS - 1] = Val_unit };
  caml_domain_state *d = Caml_state;
  if (caml_gc_phase == Phase_sweep_ephe) return false; /* all that can be reached has been */
#if OCAML_VERSION >= 50500
  CAMLassert(caml_marking_started());
#endif
  if (d->marking_done) {
    atomic_fetch_add(&num_domains_to_mark, 1);
    d->marking_done = 0;
  }
  if (d->mark_stack->count == 0)
    mark_stack_push_range(d->mark_stack, (value_ptr)nothing, (value_ptr)nothing + WORDS);
  return true;
}

#if OCAML_VERSION >= 50300
#define IDLE_WORDS 200000

/* The counters of the pacer keep their distance, so that the program's next slices are what they would have been. */
void oh_cycle_idle_slice(void)
{
  uintnat before = atomic_load(&work_counter);
#if OCAML_VERSION >= 50500
  if (Caml_state->sweeping_done && !caml_marking_started()) {
    request_mark_phase();
    caml_empty_minor_heaps_once();
  }
#endif
  major_collection_slice(IDLE_WORDS, 0, 0, Slice_uninterruptible, 0);
  atomic_fetch_add(&alloc_counter, atomic_load(&work_counter) - before);
}

/* What the collector is ahead of the program by now does not count: otherwise there would be nothing to do. */
void oh_cycle_request_slice(caml_domain_state *d)
{
  uintnat allocated = atomic_load(&alloc_counter), worked = atomic_load(&work_counter);
  if ((intnat)(worked - allocated) > 0) atomic_compare_exchange_strong(&alloc_counter, &allocated, worked);
#if OCAML_VERSION >= 50500
  if (d->sweeping_done && !caml_marking_started()) {
    request_mark_phase();
    d->requested_minor_gc = 1;
  }
#endif
  d->requested_major_slice = 1;
}
#endif
