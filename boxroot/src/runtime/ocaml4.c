/* SPDX-License-Identifier: MIT */
/* OCaml 4.14: our hooks on blocking sections, which release and take the lock; and the collector, which visits all
   roots while the program waits. */
#include "../runtime.h"
#if !BXR_OCAML5
#include "../os.h"
#include "ocaml4_token.h"
#include <caml/domain.h>
#include <caml/major_gc.h>
#include <caml/minor_gc.h>
#include <caml/misc.h>
#include <caml/roots.h>
#include <pthread.h>

/* --- hooks on blocking sections ----------------------------------------------------------------------------------- */

CAMLextern void (*caml_leave_blocking_section_hook)(void);
CAMLextern void (*caml_enter_blocking_section_hook)(void);

/* Whether the library is attached to the runtime: a thread that passes our hooks with the lock takes the token. */
static bool attached;

/* Whenever ours are found not in front, other hooks are there, which may or may not call ours. With a single pair of
   functions of ours, the two might call each other for ever. So there is one pair for each pair of foreign hooks that
   was ever found, which it calls from then on. Beyond 32 such pairs ours cannot be in front: then each hand-over of the
   token is a revocation. */
#define EACH_PAIR(X) \
  X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) \
  X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)
enum { PAIRS = 32 };
static bxr_runtime_token_hooks earlier[PAIRS]; /* what the pair k calls; once written, never changed */
static int pairs;      /* how many of them are in use */
static int front = -1; /* the pair that was last put, or found, in front */

static BXR_THREAD_LOCAL uint64_t active_pairs; /* bit k: this thread is within the pair k of our hooks */

/* Pairs within pairs belong to the same blocking section. One that is reached again from itself, by way of a library
   that calls what calls it, goes on to what was there first. */
static bxr_runtime_token_hooks const *within(int k) { return &earlier[(active_pairs >> k & 1) != 0 ? 0 : k]; }

static void enter(int k)
{
  uint64_t active = active_pairs;
  bxr_runtime_token_hooks const *next = within(k);
  if (active == 0) bxr_runtime_token_drop();
  active_pairs = active | (uint64_t)1 << k;
  next->enter();
  active_pairs = active;
}

static void leave(int k)
{
  uint64_t active = active_pairs;
  bxr_runtime_token_hooks const *next = within(k);
  active_pairs = active | (uint64_t)1 << k;
  next->leave();
  active_pairs = active;
  if (active != 0) return;
  bxr_runtime_origin_find();
  if (bxr_runtime_token_inside()) bxr_runtime_token_missed();
  if (attached) bxr_runtime_token_take(false);
  else bxr_runtime_token_passed(true);
}

#define DEFINE(k) static void enter_##k(void) { enter(k); } static void leave_##k(void) { leave(k); }
EACH_PAIR(DEFINE)
#define NAME(k) { enter_##k, leave_##k },
static bxr_runtime_token_hooks const ours[PAIRS] = { EACH_PAIR(NAME) };

static void set_hooks(bxr_runtime_token_hooks h)
{
  caml_enter_blocking_section_hook = h.enter;
  caml_leave_blocking_section_hook = h.leave;
}

static bool in_front(void) { return front >= 0 && bxr_runtime_token_hooks_are(ours[front]); }

static int pair_for_current(void)
{
  for (int k = 0; k < pairs; k++)
    if (bxr_runtime_token_hooks_are(ours[k]) || bxr_runtime_token_hooks_are(earlier[k])) return k;
  if (pairs == PAIRS) return -1;
  earlier[pairs] = bxr_runtime_token_current_hooks();
  return pairs++;
}

/* Puts ours in front, and takes the token. Needs the lock. */
static void go_in_front(void)
{
  if (!in_front()) {
    bxr_runtime_token_missed();
    int k = pair_for_current();
    if (k >= 0) set_hooks(ours[k]);
    front = k;
  }
  bxr_runtime_token_take(true);
}

/* Removes our hooks as far as they are in front. False when others may call some of them still. */
static bool step_back(void)
{
  bool all = pairs == 0 || (pairs == 1 && bxr_runtime_token_hooks_are(ours[0]));
  for (int k = 0; k < pairs; k++)
    if (bxr_runtime_token_hooks_are(ours[k])) {
      set_hooks(earlier[k]);
      k = -1;
    }
  front = -1;
  return all;
}

/* --- the lock and the collector ----------------------------------------------------------------------------------- */

static bxr_callbacks const *callbacks;
static void (*earlier_scan)(scanning_action);
static bool attached_before, scan_left;

void bxr_runtime_check_lock(void)
{
  if (bxr_runtime_end_reached()) return;
  if (bxr_load_relaxed(&bxr_lock) == NULL && !bxr_runtime_lock_is_held()) return;
  if (bxr_runtime_origin_has_ended()) {
    bxr_runtime_token_drop();
    return;
  }
  if (attached) go_in_front();
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
  if (!attached) return;
  go_in_front();
  bxr_visitor visitor = { (void (*)(void))action, NULL };
  if (action == &caml_oldify_one) callbacks->scan_young(0, &visitor);
  else if (action == &caml_darken) callbacks->start_cycle(0, &visitor);
  else callbacks->scan_all(0, &visitor);
}

void bxr_runtime_attach(bxr_callbacks const *c)
{
  callbacks = c;
  attached = true;
  if (!scan_left) {
    earlier_scan = caml_scan_roots_hook;
    caml_scan_roots_hook = scan_hook;
  }
  if (!attached_before) {
    attached_before = true;
    (void)pthread_atfork(NULL, NULL, bxr_runtime_token_after_fork);
    bxr_runtime_lock_prepare();
  }
  go_in_front();
}

void bxr_runtime_detach(void)
{
  attached = false;
  scan_left = caml_scan_roots_hook != scan_hook;
  if (!scan_left) caml_scan_roots_hook = earlier_scan;
  if (!step_back() || scan_left) bxr_object_pin();
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
uint64_t bxr_runtime_domain_number(void) { return 1; }
bool bxr_runtime_may_end_unseen(void) { return bxr_runtime_origin_is_ocaml(); }
bxr_runtime_strays bxr_runtime_strays_here(void) { return BXR_RUNTIME_NO_STRAYS; }
bool bxr_runtime_is_only_domain(void) { return true; }
bool bxr_runtime_is_ours(void) { return true; } /* with OCaml 5's the library does not link */
bool bxr_runtime_is_terminating(void) { return false; }
bool bxr_runtime_marking_done(void) { return true; }
bool bxr_runtime_marking_has_started(void) { return false; }
bool bxr_runtime_may_start_marking(void) { return false; }
uintptr_t bxr_runtime_cycle(void) { return 0; }
bool bxr_runtime_has_shut_down(void) { return true; } /* as far as markers are concerned: they never read our memory */
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
