/* SPDX-License-Identifier: MIT */
/* Minor heaps. The texts of two functions are changed by minor_gc.edits.

   Stock   takes a minor heap from caml_stat_alloc_aligned_noexc, and frees it by caml_stat_free.
   Here    it is in chunks of its own. The only aligned memory that this unit takes is a minor heap; the other memory
           that it frees is remembered sets. When it frees a minor heap, the bounds of the domain's minor heap are still
           those of this one.
   Also    with the setting minor=adaptive (minor.h) the minor heap may get another size when caml_gc_dispatch has
           emptied it, in the way in which Gc.set changes it. */
#include "prelude.h"
#include "hooks.h"
#include "clock.h"
#include "minor.h"
#include "settings.h"
#include "space.h"
#include <caml/signals.h>

static struct oh_minor policy;
static bool fixed;        /* the program has chosen a size */
static void *prepared;    /* the memory for a size that was chosen here */
/* When the collection began: words, and whether the remembered set was full; words in all, when the last one ended. */
static uintnat allocated;
static bool remembered;
static double promoted, major;

static void *alloc_aligned(uintptr_t bytes, caml_stat_block *base)
{
  if (prepared != NULL) *base = prepared;
  else {
    fixed = Caml_state->young_start != NULL;
    *base = oh_hooks_alloc_minor_heap(bytes);
  }
  prepared = NULL;
  return *base;
}

static void free_memory(void *memory)
{
  if (memory != NULL && memory == Caml_state->young_base)
    oh_hooks_free_minor_heap(memory, (char *)Caml_state->young_end - (char *)Caml_state->young_start);
  else caml_stat_free(memory);
}

#define caml_stat_alloc_aligned_noexc(bytes, modulo, base) alloc_aligned(bytes, base)
#define caml_stat_free(memory) free_memory(memory)

static bool adapts(void) { return oh_settings.minor_adaptive && !fixed; }

/* Does one of its tables ask for a collection? The first store gives it memory. */
#define IS_FULL(table) ((table)->base != NULL && (table)->ptr >= (table)->threshold)

static void slice_took(uint64_t nanoseconds)
{
  if (adapts()) oh_minor_slice(&policy, Caml_state->minor_heap_wsz, nanoseconds);
}

static void begin_minor(void)
{
  if (!adapts()) return;
  allocated = (uintnat)(Caml_state->young_alloc_end - Caml_state->young_ptr);
  remembered = IS_FULL(Caml_state->ref_table) || IS_FULL(Caml_state->ephe_ref_table)
               || IS_FULL(Caml_state->custom_table);
  oh_hooks_slice_took = slice_took;
  oh_minor_begin(&policy, oh_clock_used());
}

static void end_minor(void)
{
  if (!adapts()) return;
  double promoted_now = Caml_state->stat_promoted_words;
  double major_now = Caml_state->stat_major_words + (double)caml_allocated_words;
  struct oh_minor_collection c = {
    .words = Caml_state->minor_heap_wsz, .allocated = allocated, .promoted = (size_t)(promoted_now - promoted),
    .major = (size_t)(major_now - major), .remembered = remembered, .alone = true,
    .used = oh_clock_used()
  };
  oh_minor_end(&policy, &c);
  promoted = promoted_now;
  major = major_now;
}

/* Sizes that are tried in turn get the same memory again: it is given back when the trial is over. */
static void give_back(void)
{
  static bool kept;
  kept = kept || oh_minor_tries(&policy);
  if (!kept || oh_minor_tries(&policy)) return;
  kept = false;
  oh_space_trim(OH_SPACE_YOUNG);
}

/* The trigger is where caml_gc_dispatch has put it. */
static void adapt(void)
{
  uintnat now = Caml_state->minor_heap_wsz, wanted = adapts() ? oh_minor_choose(&policy, now) : now;
  uintnat bytes = (Bsize_wsize(wanted) + Page_size - 1) / Page_size * Page_size;
  if (bytes == Bsize_wsize(now)) {
    give_back();
    return;
  }
  prepared = oh_hooks_alloc_minor_heap(bytes);
  if (prepared != NULL) {
    caml_set_minor_heap_size(bytes);
    Caml_state->young_trigger = Caml_state->young_alloc_mid;
    caml_update_young_limit();
    if (!oh_minor_tries(&policy)) oh_space_trim(OH_SPACE_YOUNG); /* the old one */
  }
  oh_minor_changed(&policy, now, Caml_state->minor_heap_wsz);
  give_back();
}

#include <minor_gc.c>
