/* SPDX-License-Identifier: MIT */
/* Part of major_gc.c: the loop that marks. It takes the place of the runtime's, works on the same mark stack, and
   counts the same work. Three things differ.

   *No branch on the kind of a word.* Whether a field is an immediate, a static block or a block of the heap cannot be
   predicted. So each word is stored at the end of the queue, whose end then moves by 0 or 1, and the prefetch goes to
   the block, or by a conditional move to a line that is in the cache anyway. That is worse where there is little to
   choose from, as in a list: there the processor should run ahead along the predicted path. So with few blocks in the
   queue the loop branches.

   *One comparison for a word*, of which there are two forms. By range: the word's distance from the beginning of the
   heap's range (table.h) is rotated by one bit and compared with half the length of the range. The lowest bit becomes
   the highest one, so that an immediate is as far away as any pointer to outside. By table, where not all of the heap
   lies in the range: the word is rotated by one bit, and the chunk's number that this gives is looked up in the table;
   the number of an immediate is beyond its end, where the last entry stands for all.
   Either way a word that passes is only a candidate. Whether the marker follows it (oh_pointer_is_markable_by) is asked
   when it leaves the queue: for each candidate, not for each word, and with a branch that is predicted well. There the
   slow path sets the reach bits of regions, which lie in the range, and whose kind is less than OH_KIND_MAJOR; and it
   taints chunks of unknown kind. While naked pointers are reported, that is asked of each word at once.

   *No call in the loop over words*, so that all it needs stays in registers.

   The queue: words[begin … end), modulo its size, are candidates, prefetched and not yet looked at; end - begin <=
   QUEUE. A step looks at STEP words of a block at most, and at none when that could make the queue overflow: what is
   left of a block goes on the mark stack. The immediates with which a long block, or what is left of it, begins are not
   among these: they are passed over by their lowest bits alone. The queue is filled from the mark stack while it has no
   more than REFILL_UP_TO entries, so that a block has time to arrive. With an empty stack come words of tracked regions
   (region.h). Work: a word for each header and each field, whether looked at or passed over.

   Source of the ideas: the prefetching queue is Stephen Dolan's, in the runtime; the table in its place in marking is
   Guillaume Munch-Maccagnoni's. */
#ifndef OH_MARK_LOOP_H
#define OH_MARK_LOOP_H

#include "block.h"
#include "pointer.h"
#include <caml/version.h>

enum {
  OH_MARK_LOOP_QUEUE = 256,
  OH_MARK_LOOP_STEP = 64,
  OH_MARK_LOOP_STEP_UP_TO = OH_MARK_LOOP_QUEUE - OH_MARK_LOOP_STEP, /* no step with more entries than that */
  OH_MARK_LOOP_REFILL_UP_TO = 64, /* with no more entries the next block comes from the mark stack */
  OH_MARK_LOOP_BRANCH_BELOW = 16  /* with fewer the loop branches on the kind of a word */
};
#define OH_MARK_LOOP_AT(i) ((i) % OH_MARK_LOOP_QUEUE)

enum oh_mark_loop_form { OH_MARK_LOOP_RANGE, OH_MARK_LOOP_TABLE, OH_MARK_LOOP_REPORT };

#define OH_MARK_LOOP_INLINE static inline __attribute__((always_inline))

static inline uintptr_t oh_mark_loop_rotate(uintptr_t x) { return x >> 1 | x << (sizeof x * 8 - 1); }

/* May the marker have to follow this word? 0 or 1, without a branch except in the last form. */
OH_MARK_LOOP_INLINE uintptr_t oh_mark_loop_is_candidate(enum oh_mark_loop_form form, uintptr_t base, uintptr_t half,
                                                        value v)
{
  if (form == OH_MARK_LOOP_RANGE) return oh_mark_loop_rotate((uintptr_t)v - base) < half;
  if (form == OH_MARK_LOOP_REPORT) return (v & 1) == 0 && oh_pointer_is_markable_by((uintptr_t)v, OH_REGION_BY_BLOCK);
  uintptr_t i = oh_mark_loop_rotate((uintptr_t)v) >> (OH_CHUNK_LOG - 1);
  int8_t k = oh_load_relaxed(&oh_table[i < OH_TABLE_ENTRIES ? i : OH_TABLE_ENTRIES]);
  return OH_TAINT ? k <= OH_KIND_MAJOR : k == OH_KIND_MAJOR;
}

/* In what a domain's marker and the helper's thread, which has no Caml_state, are not the same. A constant, so that the
   calls are direct. */
struct oh_mark_loop_policy {
  void (*continuation)(value v);
  /* Is this a pointer to a region? Then it is dealt with. NULL: as any other word is. */
  bool (*meets_region)(uintptr_t v);
  void (*push)(struct mark_stack *stk, value_ptr start, value_ptr end);
  intnat (*track)(struct oh_track **track); /* words of tracked regions, as oh_track_mark; NULL: are left alone */
  void (*count)(uintnat blocks);            /* that were marked */
};

/* Is this candidate a block of the heap? */
OH_MARK_LOOP_INLINE bool oh_mark_loop_is_markable(enum oh_mark_loop_form form,
                                                  struct oh_mark_loop_policy const *policy, value v)
{
  if (form == OH_MARK_LOOP_REPORT) return true;
  /* The range lies within the table. */
  if (form == OH_MARK_LOOP_RANGE) {
    int8_t k = oh_load_relaxed(&oh_table[(uintptr_t)v >> OH_CHUNK_LOG]);
    if (__builtin_expect(k == OH_KIND_MAJOR, 1)) return true;
  }
  if (policy->meets_region != NULL && policy->meets_region((uintptr_t)v)) return false;
  return oh_pointer_is_markable_by((uintptr_t)v, OH_REGION_BY_BLOCK);
}

OH_MARK_LOOP_INLINE void oh_mark_loop_prefetch(value v)
{
  __builtin_prefetch((void const *)(v - (value)sizeof(value)));
  __builtin_prefetch((void const *)(v + 3 * (value)sizeof(value)));
}

/* Changes a block's status from UNMARKED to MARKED; the tag is not one of those that can change at the same time. */
OH_MARK_LOOP_INLINE void oh_mark_loop_mark(value block, header_t hd)
{
  atomic_store_relaxed(Hp_atomic_val(block), With_status_hd(hd, caml_global_heap_state.MARKED));
}

/* The same for a lazy block. Another domain, which may have started this very moment, may change its tag, by a
   compare-and-swap of the header: so only the byte with the status is written, which also has bits of the size. */
OH_MARK_LOOP_INLINE void oh_mark_loop_mark_lazy(value block, header_t marked)
{
  enum { SHIFT = 8, BYTE = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 1 : sizeof(header_t) - 2 };
  _Static_assert(HEADER_COLOR_SHIFT == SHIFT && HEADER_COLOR_BITS <= 8, "the status lies in the byte above the tag");
  __atomic_store_n((unsigned char *)Hp_val(block) + BYTE, (unsigned char)(marked >> SHIFT), __ATOMIC_RELAXED);
}

/* Tags from Forcing_tag on, as bits: of lazy blocks, forced or not, and of objects, which take the same way, since a
   branch between them would not be foreseen. */
#define OH_MARK_LOOP_BIT(tag) ((uintnat)1 << ((tag) - Forcing_tag))
#define OH_MARK_LOOP_WHOLE \
  (OH_MARK_LOOP_BIT(Lazy_tag) | OH_MARK_LOOP_BIT(Forcing_tag) | OH_MARK_LOOP_BIT(Forward_tag) | \
   OH_MARK_LOOP_BIT(Object_tag))

enum { OH_MARK_LOOP_GROUP = 8 };

/* Are the next OH_MARK_LOOP_GROUP words immediates? */
OH_MARK_LOOP_INLINE bool oh_mark_loop_is_immediate(value_ptr from)
{
  value all = 1;
  for (int i = 0; i < OH_MARK_LOOP_GROUP; i++) all &= volatile_load_uninstrumented(from + i);
  return all != 0;
}

/* Are the next words up to `stop` so many, and none of them a candidate? */
OH_MARK_LOOP_INLINE bool oh_mark_loop_passes_group(enum oh_mark_loop_form form, uintptr_t base, uintptr_t half,
                                                   value_ptr from, value_ptr stop)
{
  if (form == OH_MARK_LOOP_REPORT || stop - from < OH_MARK_LOOP_GROUP) return false;
  uintptr_t any = 0;
  for (int i = 0; i < OH_MARK_LOOP_GROUP; i++)
    any |= oh_mark_loop_is_candidate(form, base, half, volatile_load_uninstrumented(from + i));
  return any == 0;
}

/* Marks a block with a tag between those of ordinary blocks and those without fields to look at. Result: how many of
   its fields are to be passed over, or -1: all. */
static __attribute__((noinline)) intnat oh_mark_loop_special(value block, header_t hd,
                                                             void (*continuation)(value v))
{
  if (Tag_hd(hd) == Cont_tag) {
    continuation(block);
    return -1;
  }
  oh_mark_loop_mark(block, hd);
  if (Tag_hd(hd) != Closure_tag) return 0;
  CAMLassert(Start_env_closinfo(Closinfo_val(block)) <= Wosize_hd(hd));
  return Start_env_closinfo(Closinfo_val(block));
}

OH_MARK_LOOP_INLINE intnat oh_mark_loop_run(enum oh_mark_loop_form form, struct oh_mark_loop_policy const *policy,
                                            struct mark_stack *stk, intnat budget)
{
  value words[OH_MARK_LOOP_QUEUE];
  value const hot = (value)(words + 8);
  struct oh_track *track = NULL;
  uintnat begin = 0, end = 0, least = OH_MARK_LOOP_REFILL_UP_TO, blocks = 0;
  uintptr_t const base = oh_heap_range.base, half = oh_heap_range.size / 2;
  header_t const unmarked = caml_global_heap_state.UNMARKED, change = unmarked ^ caml_global_heap_state.MARKED;

  for (;;) {
    value block;
    value_ptr from;
    intnat now, rest; /* fields to look at now, and later */
    if (end - begin > least) {
      block = words[OH_MARK_LOOP_AT(begin++)];
    visit:
      if (!oh_mark_loop_is_markable(form, policy, block)) continue;
      CAMLassert(Is_block(block) && block != Debug_free_major);
      CAML_TSAN_ANNOTATE_HAPPENS_AFTER(Hp_val(block));
      header_t hd = Hd_val(block);
      if (__builtin_expect(Tag_hd(hd) < Forcing_tag, 1)) {
        CAMLassert(!Has_status_hd(hd, caml_global_heap_state.GARBAGE));
        if (!Has_status_hd(hd, unmarked)) continue;
        atomic_store_relaxed(Hp_atomic_val(block), hd ^ change);
      marked:
        blocks++;
        budget--;
        from = Op_val(block);
        now = Wosize_hd(hd);
      }
      else {
        if (Tag_hd(hd) == Infix_tag) {
          block -= Infix_offset_hd(hd);
          hd = Hd_val(block);
        }
        CAMLassert(!Has_status_hd(hd, caml_global_heap_state.GARBAGE));
        if (!Has_status_hd(hd, unmarked)) continue;
        if (OH_MARK_LOOP_BIT(Tag_hd(hd)) & OH_MARK_LOOP_WHOLE) {
          oh_mark_loop_mark_lazy(block, hd ^ change);
          goto marked;
        }
        blocks++;
        if (Tag_hd(hd) >= No_scan_tag) {
          atomic_store_relaxed(Hp_atomic_val(block), hd ^ change);
          budget -= Whsize_hd(hd);
          continue;
        }
        intnat past = oh_mark_loop_special(block, hd, policy->continuation);
        if (past < 0) {
          budget -= OCAML_VERSION < 50500 ? Wosize_hd(hd) : Whsize_hd(hd); /* a continuation */
          continue;
        }
        budget -= 1 + past;
        from = Op_val(block) + past;
        now = Wosize_hd(hd) - past;
      }
    }
    else if (budget > 0 && stk->count != 0) {
      mark_entry e = stk->stack[--stk->count];
      from = e.start;
      now = e.end - e.start;
    }
    else if (policy->track != NULL && __builtin_expect(track != NULL || oh_track_is_waiting(), 0) && budget > 0) {
      budget -= policy->track(&track); /* it comes to the stack */
      continue;
    }
    else if (least != 0) { /* there is nothing else to do: the rest of the queue */
      least = 0;
      continue;
    }
    else break;

    rest = 0;
    if (__builtin_expect(budget <= 0, 0)) rest = now, now = 0;
    if (__builtin_expect(now > OH_MARK_LOOP_STEP, 0)) {
      for (; budget > 0 && now >= OH_MARK_LOOP_GROUP && oh_mark_loop_is_immediate(from); from += OH_MARK_LOOP_GROUP)
        now -= OH_MARK_LOOP_GROUP, budget -= OH_MARK_LOOP_GROUP;
      if (now > OH_MARK_LOOP_STEP) rest = now - OH_MARK_LOOP_STEP, now = OH_MARK_LOOP_STEP;
    }
    if (form == OH_MARK_LOOP_REPORT && end - begin > OH_MARK_LOOP_STEP_UP_TO) rest += now, now = 0;
    if (form != OH_MARK_LOOP_REPORT && end - begin >= OH_MARK_LOOP_BRANCH_BELOW) {
      if (__builtin_expect(end - begin > OH_MARK_LOOP_STEP_UP_TO, 0)) rest += now, now = 0;
      budget -= now;
      for (value_ptr stop = from + now; from < stop; from++) {
        value v = volatile_load_uninstrumented(from);
        uintptr_t is = oh_mark_loop_is_candidate(form, base, half, v);
        words[OH_MARK_LOOP_AT(end)] = v;
        oh_mark_loop_prefetch(is ? v : hot);
        end += is;
      }
    }
    else {
      uintnat before = end;
      budget -= now;
      value_ptr const stop = from + now;
      while (oh_mark_loop_passes_group(form, base, half, from, stop)) from += OH_MARK_LOOP_GROUP;
      for (; from < stop; from++) {
        value v = volatile_load_uninstrumented(from);
        if (oh_mark_loop_is_candidate(form, base, half, v)) {
          oh_mark_loop_prefetch(v);
          words[OH_MARK_LOOP_AT(end)] = block = v;
          end++;
        }
      }
      if (least == 0 && end != before && rest == 0) {
        end--;
        goto visit;
      }
    }
    CAMLassert(end - begin <= OH_MARK_LOOP_QUEUE);

    if (__builtin_expect(rest != 0, 0)) {
      policy->push(stk, from, from + rest);
      __builtin_prefetch((void const *)(from + 1));
      /* The queue may have been about to run out, and there is work again. */
      if (end - begin > OH_MARK_LOOP_REFILL_UP_TO) least = OH_MARK_LOOP_REFILL_UP_TO;
    }
  }
  CAMLassert(begin == end);
  if (__builtin_expect(track != NULL, 0)) oh_track_leave(track);
  policy->count(blocks);
  return budget;
}

/* --- in a domain -------------------------------------------------------------------------------------------------- */

/* From OCaml 5.5 on darkening for a tracked region counts its own work, which is part of the result already. */
static __attribute__((noinline)) intnat oh_mark_loop_track(struct oh_track **track)
{
#if OCAML_VERSION >= 50500
  uintnat counted = Caml_state->mark_work_done_between_slices;
  intnat work = (intnat)oh_track_mark(track);
  Caml_state->mark_work_done_between_slices = counted;
  return work;
#else
  return (intnat)oh_track_mark(track);
#endif
}

static void oh_mark_loop_count(uintnat blocks) { Caml_state->stat_blocks_marked += blocks; }

static struct oh_mark_loop_policy const oh_mark_loop_domain = {
  .continuation = caml_darken_cont,
  .push = mark_stack_push_range,
  .track = oh_mark_loop_track,
  .count = oh_mark_loop_count,
};

static __attribute__((noinline)) intnat oh_mark_loop_by_range(struct mark_stack *stk, intnat budget)
{
  return oh_mark_loop_run(OH_MARK_LOOP_RANGE, &oh_mark_loop_domain, stk, budget);
}

static __attribute__((noinline)) intnat oh_mark_loop_by_table(struct mark_stack *stk, intnat budget)
{
  return oh_mark_loop_run(OH_MARK_LOOP_TABLE, &oh_mark_loop_domain, stk, budget);
}

static __attribute__((noinline)) intnat oh_mark_loop_reporting(struct mark_stack *stk, intnat budget)
{
  return oh_mark_loop_run(OH_MARK_LOOP_REPORT, &oh_mark_loop_domain, stk, budget);
}

/* Marks from the stack until `budget` words are done, or the stack is empty. Result: what is left of the budget. */
static intnat oh_mark_loop(struct mark_stack *stk, intnat budget)
{
  if (__builtin_expect(oh_block_has_old(), 0)) oh_block_purge_old();
  if (oh_table_reporting()) return oh_mark_loop_reporting(stk, budget);
  return oh_heap_range_is_whole() ? oh_mark_loop_by_range(stk, budget) : oh_mark_loop_by_table(stk, budget);
}

#endif
