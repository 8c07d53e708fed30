/* SPDX-License-Identifier: MIT */
/* The marker of OCaml 5: how far it is, and its work on single values. docs/versions.md lists what is relied upon, in
   which version. */
#include "runtime_ocaml5_state.h"
#if BXR_OCAML5 && !BOXROOT_CONSERVATIVE
#include "atomic.h"
#include <caml/gc.h>
#include <caml/major_gc.h>
#include <caml/minor_gc.h>
#include <caml/shared_heap.h>

#if defined(OCAML_VERSION_EXTRA)
_Static_assert(sizeof(OCAML_VERSION_EXTRA) == 1,
               "OCaml " OCAML_VERSION_STRING
               " is not the release of that number, which Boxroot was tested with: define BOXROOT_CONSERVATIVE as 1");
#endif

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
   meet it there. */
static bool is_pointer(uintptr_t v) { return (v & (sizeof(value) - 1)) == 0; }

/* With Outheap's runtime a root may hold a pointer to memory where there is no header, and a pointer to a region has to
   be noted. Cost: a call for each root, with that runtime only. */
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
   atomically, and the one field darkened. */
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
#endif
