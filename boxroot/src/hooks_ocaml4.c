/* SPDX-License-Identifier: MIT */
/* Contact with the runtime of OCaml 4.14: one domain, and a master lock that threads pass through the two blocking-section hooks.

   The runtime has no call that tells whether this thread holds the lock. We keep a thread-local word up to date from inside the
   hooks. Two situations remain in which the word may be out of date: the thread existed before our hooks were installed, or
   another library (systhreads does, when it is initialised) has replaced the hooks without calling the earlier ones. The second is
   noticed at every collection and on every slow path, and our hooks are put in front again. In both the truth is found by
   looking at the stack: when a thread takes the lock, systhreads restores the runtime's pointers into *its* stack. */
#include <boxroot/config.h>
#if !BXR_OCAML5
#include "runtime.h"
#include "atomic.h"
#include "platform.h"
#include <caml/domain.h>
#include <caml/major_gc.h>
#include <caml/minor_gc.h>
#include <caml/misc.h>
#include <caml/roots.h>
#include <caml/signals.h>

CAMLextern void (*caml_leave_blocking_section_hook)(void);
CAMLextern void (*caml_enter_blocking_section_hook)(void);

BXR_THREAD_LOCAL void *bxr_lock;
static char the_domain;                           /* bxr_lock == &the_domain while the lock is held */
static int generation;                            /* times that our hooks were put in front or taken out (under the lock) */
static BXR_THREAD_LOCAL int known_since;          /* the generation for which this thread's bxr_lock is known to be right */
static int levels;                                /* pairs of hooks of ours that are, or may be, in the chain (under the lock) */

static bxr_callbacks const *callbacks;
static void (*earlier_scan)(scanning_action);
static bool attached, scan_left;

static void set_lock(bool held)
{
  bxr_lock = held ? &the_domain : NULL;
  known_since = bxr_load_relaxed(&generation);
}

/* Each time our hooks go in front they need a pair of functions with `earlier` pointers of its own: with a single pair, a library
   that wrapped them before would call them, and they would call it, for ever. */
#define LEVELS 4
static struct { void (*enter)(void), (*leave)(void); } earlier[LEVELS];
#define LEVEL(n) \
  static void enter_##n(void) { set_lock(false); earlier[n].enter(); } \
  static void leave_##n(void) { earlier[n].leave(); set_lock(true); }
LEVEL(0) LEVEL(1) LEVEL(2) LEVEL(3)
static struct { void (*enter)(void), (*leave)(void); } const ours[LEVELS] = {
  { enter_0, leave_0 }, { enter_1, leave_1 }, { enter_2, leave_2 }, { enter_3, leave_3 },
};

static bool are_current(void (*enter)(void), void (*leave)(void))
{
  return caml_enter_blocking_section_hook == enter && caml_leave_blocking_section_hook == leave;
}

static bool in_front(void) { return levels > 0 && are_current(ours[levels - 1].enter, ours[levels - 1].leave); }

/* Needs the lock. */
static void go_in_front(void)
{
  if (in_front()) return;
  for (int i = 0; i < levels; i++) /* somebody put the hooks back that were there before ours */
    if (are_current(earlier[i].enter, earlier[i].leave)) levels = i;
  if (levels == LEVELS) return;
  earlier[levels].enter = caml_enter_blocking_section_hook;
  earlier[levels].leave = caml_leave_blocking_section_hook;
  caml_enter_blocking_section_hook = ours[levels].enter;
  caml_leave_blocking_section_hook = ours[levels].leave;
  levels++;
  bxr_store_relaxed(&generation, generation + 1);
  set_lock(true);
}

/* Takes our hooks out as far as they are in front. */
static void step_back(void)
{
  while (in_front()) {
    levels--;
    caml_enter_blocking_section_hook = earlier[levels].enter;
    caml_leave_blocking_section_hook = earlier[levels].leave;
  }
  bxr_store_relaxed(&generation, generation + 1);
}

/* Whether the runtime's pointers are into this thread's stack. Before our hooks are installed, also when there are none: then no OCaml
   code is active at all, and whoever calls us must be a program in another language that has just started OCaml. */
static bool stack_says_held(void)
{
  if (Caml_state == NULL) return false;
  void *p[] = { Caml_state->bottom_of_stack, Caml_state->local_roots, Caml_state->external_raise };
  bool any = false;
  for (int i = 0; i < 3; i++) {
    if (p[i] == NULL) continue;
    if (bxr_os_on_this_stack(p[i])) return true;
    any = true;
  }
  return !any && generation == 0;
}

void bxr_runtime_check_lock(void)
{
  if ((known_since == 0 || known_since != bxr_load_relaxed(&generation) || !in_front()) && stack_says_held()) set_lock(true);
  if (bxr_lock != NULL && bxr_load_relaxed(&attached)) go_in_front();
}

void bxr_visit(bxr_visitor const *visitor, value v, uintptr_t *slot)
{
  ((scanning_action)visitor->action)(v, (value *)slot);
}

/* Nothing looks at values between a minor collection's visit and its end: there is no deletion barrier. */
void bxr_visit_young(bxr_visitor const *visitor, value v, uintptr_t *slot) { bxr_visit(visitor, v, slot); }

static void scan_hook(scanning_action action)
{
  if (earlier_scan != NULL) earlier_scan(action);
  if (!attached) return;
  set_lock(true);
  go_in_front();
  bxr_visitor visitor = { (void (*)(void))action, NULL };
  if (action == &caml_oldify_one) callbacks->minor(0, &visitor);
  else if (action == &caml_darken) callbacks->cycle_start(0, &visitor);
  else callbacks->all(0, &visitor);
}

void bxr_runtime_attach(bxr_callbacks const *c)
{
  callbacks = c;
  attached = true;
  if (!scan_left) {
    earlier_scan = caml_scan_roots_hook;
    caml_scan_roots_hook = scan_hook;
  }
  go_in_front();
}

void bxr_runtime_detach(void)
{
  attached = false;
  scan_left = caml_scan_roots_hook != scan_hook;
  if (!scan_left) caml_scan_roots_hook = earlier_scan;
  step_back();
}

void *bxr_runtime_self(void) { return bxr_self(); }
unsigned bxr_runtime_domain(void) { return 0; }
bool bxr_runtime_alone(void) { return true; }
bool bxr_runtime_leaving(void) { return false; }
bool bxr_runtime_marked(void) { return true; }
uintptr_t bxr_runtime_cycle(void) { return 0; }
bool bxr_runtime_over(void) { return true; } /* as far as markers are concerned: they never come to our memory */
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
