/* SPDX-License-Identifier: MIT */
/* OCaml 4.14: the collector, which visits all roots while the program waits, and the lock. */
#include "runtime.h"
#if !BXR_OCAML5
#include "atomic.h"
#include "object.h"
#include "runtime_end.h"
#include "runtime_ocaml4_held.h"
#include "runtime_ocaml4_hooks.h"
#include "runtime_ocaml4_origin.h"
#include "runtime_ocaml4_token.h"
#include "self.h"
#include <caml/domain.h>
#include <caml/major_gc.h>
#include <caml/minor_gc.h>
#include <caml/roots.h>
#include <pthread.h>

static bxr_callbacks const *callbacks;
static void (*earlier_scan)(scanning_action);
static bool attached_before, scan_left;

void bxr_runtime_check_lock(void)
{
  if (bxr_runtime_end_reached()) return;
  if (bxr_load_relaxed(&bxr_lock) == NULL && !bxr_runtime_held()) return;
  if (bxr_runtime_origin_has_ended()) {
    bxr_runtime_token_drop();
    return;
  }
  if (bxr_runtime_hooks_attached) bxr_runtime_hooks_go_in_front();
  else bxr_runtime_token_take(true);
}

void bxr_runtime_visit(bxr_visitor const *visitor, value v, uintptr_t *slot)
{
  ((scanning_action)visitor->action)(v, (value *)slot);
}

/* Nothing looks at values between a minor collection's visit and its end: there is no deletion barrier. */
void bxr_runtime_visit_young(bxr_visitor const *visitor, value v, uintptr_t *slot)
{
  bxr_runtime_visit(visitor, v, slot);
}

static void scan_hook(scanning_action action)
{
  if (earlier_scan != NULL) earlier_scan(action);
  if (!bxr_runtime_hooks_attached) return;
  bxr_runtime_hooks_go_in_front();
  bxr_visitor visitor = { (void (*)(void))action, NULL };
  if (action == &caml_oldify_one) callbacks->minor(0, &visitor);
  else if (action == &caml_darken) callbacks->cycle_start(0, &visitor);
  else callbacks->all(0, &visitor);
}

void bxr_runtime_attach(bxr_callbacks const *c)
{
  callbacks = c;
  bxr_runtime_hooks_attached = true;
  if (!scan_left) {
    earlier_scan = caml_scan_roots_hook;
    caml_scan_roots_hook = scan_hook;
  }
  if (!attached_before) {
    attached_before = true;
    (void)pthread_atfork(NULL, NULL, bxr_runtime_token_after_fork);
    bxr_runtime_held_prepare();
  }
  bxr_runtime_hooks_go_in_front();
}

void bxr_runtime_detach(void)
{
  bxr_runtime_hooks_attached = false;
  scan_left = caml_scan_roots_hook != scan_hook;
  if (!scan_left) caml_scan_roots_hook = earlier_scan;
  if (!bxr_runtime_hooks_step_back() || scan_left) bxr_object_pin();
  bxr_runtime_token_reset();
}

void *bxr_runtime_self(void)
{
  if (BXR_LIKELY(!bxr_runtime_end_reached())) return bxr_self();
  if (bxr_load_relaxed(&bxr_lock) != NULL) bxr_runtime_token_drop();
#if BOXROOT_THREAD_UNSAFE
  bxr_only_domain = NULL;
#endif
  return NULL;
}

unsigned bxr_runtime_domain(void) { return 0; }
bool bxr_runtime_may_end_unseen(void) { return bxr_runtime_origin_is_ocaml(); }
bxr_runtime_strays bxr_runtime_strays_here(void) { return BXR_RUNTIME_NO_STRAYS; }
bool bxr_runtime_is_only_domain(void) { return true; }
bool bxr_runtime_is_terminating(void) { return false; }
bool bxr_runtime_marking_done(void) { return true; }
bool bxr_runtime_marking_has_started(void) { return false; }
bool bxr_runtime_may_start_marking(void) { return false; }
uintptr_t bxr_runtime_cycle(void) { return 0; }
/* as far as markers are concerned: they never come to our memory */
bool bxr_runtime_has_shut_down(void) { return true; }
bool bxr_runtime_is_shutting_down(void) { return false; }
bool bxr_runtime_finish_marking(void) { return true; }
void bxr_runtime_darken(value v) { (void)v; }
uint32_t bxr_runtime_darken_slots(uintptr_t const *slots, uint32_t n) { (void)slots; (void)n; return 0; }
uintptr_t bxr_runtime_block_header(size_t words) { (void)words; return 0; }
bool bxr_runtime_block_visited(uintptr_t header) { (void)header; return true; }

bxr_minor_range bxr_runtime_minor_range(void)
{
  uintptr_t start = (uintptr_t)Caml_state->young_start, end = (uintptr_t)Caml_state->young_end;
  return (bxr_minor_range){ start, end - start };
}

#endif
