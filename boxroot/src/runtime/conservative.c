/* SPDX-License-Identifier: MIT */
/* BOXROOT_CONSERVATIVE: what stands in for the library's knowledge of OCaml 5's collector when the runtime is not
   known.

   The library then behaves towards the collector as OCaml's own generational global roots do: each time the collector
   visits roots, for whatever purpose, it is given all of ours; when it wants young ones only, those that may be young.
   No value is darkened when its root ends, no block header is made for the marker, the collector's pace is not touched,
   and the runtime's own macro says whether a value is young. docs/reference/versions.md argues that this is enough,
   with OCaml 5.5 in particular.

   What remains of the runtime's internals are the scanning hook with its flag for young values, the hook for the end of
   a domain, the identity of a domain, and the question whether it is the only one or is about to end (ocaml5.c). If one
   of these changes, the library does not compile or link. */
#include "ocaml5_marker.h"
#if BXR_OCAML5 && BOXROOT_CONSERVATIVE
#include <caml/address_class.h>
#include <caml/minor_gc.h>
#include <caml/roots.h>

#if BXR_CONSERVATIVE_UNASKED
#warning \
  "Boxroot was not tested with this version of OCaml: it takes the conservative path (quiet: -DBOXROOT_CONSERVATIVE=1)"
#endif

bool bxr_runtime_is_young(value block) { return Is_young(block); }

/* Set permanently once a minor collection has left a value where it was: the collector keeps young values longer than
   one collection. Then a pool that has been scanned may still hold young values, and each minor collection is given all
   roots. No version does that so far. */
static bool values_stay_young; /* (atomic) */

static void visit_and_watch(void *data, value v, volatile value *slot)
{
  bxr_runtime_visit(data, v, (uintptr_t *)slot);
  if (Is_block(*slot) && Is_young(*slot)) bxr_store_relaxed(&values_stay_young, true);
}

void bxr_runtime_marker_scan(bxr_callbacks const *callbacks, unsigned id, bool young_only, bxr_visitor const *visitor)
{
  if (young_only) {
    bxr_visitor watched = { (void (*)(void))visit_and_watch, (void *)visitor };
    if (bxr_load_relaxed(&values_stay_young)) callbacks->scan_all(id, visitor);
    callbacks->scan_young(id, &watched);
  } else {
    callbacks->start_cycle(id, visitor); /* or a visit for another purpose: it is handled the same way */
  }
}

/* No marker reads pools. */
bool bxr_runtime_marking_done(void) { return true; }
bool bxr_runtime_marking_has_started(void) { return false; }
bool bxr_runtime_may_start_marking(void) { return false; }
uintptr_t bxr_runtime_cycle(void) { return 0; }
bool bxr_runtime_finish_marking(void) { return true; }
void bxr_runtime_darken(value v) { (void)v; }
uint32_t bxr_runtime_darken_slots(uintptr_t const *slots, uint32_t n) { (void)slots; (void)n; return 0; }
uintptr_t bxr_runtime_block_header(size_t words) { (void)words; return 0; }
bool bxr_runtime_block_visited(uintptr_t header) { (void)header; return true; }
void bxr_runtime_visit_young(bxr_visitor const *visitor, value v, uintptr_t *slot)
{
  bxr_runtime_visit(visitor, v, slot);
}
bxr_minor_range bxr_runtime_minor_range(void) { return (bxr_minor_range){ 0, 0 }; }

#endif
