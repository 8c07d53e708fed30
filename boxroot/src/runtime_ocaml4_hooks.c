/* SPDX-License-Identifier: MIT */
#include "runtime_ocaml4_hooks.h"
#if !BXR_OCAML5
#include "runtime_ocaml4_origin.h"
#include "runtime_ocaml4_token.h"
#include <caml/misc.h>

CAMLextern void (*caml_leave_blocking_section_hook)(void);
CAMLextern void (*caml_enter_blocking_section_hook)(void);

BXR_INTERNAL_DATA_HERE bool bxr_runtime_hooks_attached;

/* Whenever ours are found not in front, other hooks are there, which may or may not call ours. With a single pair of
   functions of ours, the two might call each other for ever. So there is one pair for each pair of
   foreign hooks that was ever found, which it calls from then on. Beyond 32 such pairs ours cannot be in front: then
   each hand-over of the token is a revocation. */
#define EACH_PAIR(X) \
  X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) \
  X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)
enum { PAIRS = 32 };
static bxr_runtime_token_hooks earlier[PAIRS]; /* what the pair k calls; once written, never changed */
static int pairs;      /* of `earlier`, in use */
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
  bxr_runtime_origin_note();
  if (bxr_runtime_token_inside()) bxr_runtime_token_missed();
  if (bxr_runtime_hooks_attached) bxr_runtime_token_take(false);
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

void bxr_runtime_hooks_go_in_front(void)
{
  if (!in_front()) {
    bxr_runtime_token_missed();
    int k = pair_for_current();
    if (k >= 0) set_hooks(ours[k]);
    front = k;
  }
  bxr_runtime_token_take(true);
}

bool bxr_runtime_hooks_step_back(void)
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
#endif
