/* SPDX-License-Identifier: MIT */
/* OCaml 5: the hooks, and which domain this is. docs/versions.md lists what is relied upon, in which version. */
#include "runtime_ocaml5_exit.h"
#if BXR_OCAML5
#include "atomic.h"
#include "object.h"
#include "runtime_conservative.h"
#include "runtime_end.h"
#include "runtime_ocaml5_pace.h"
#include <caml/misc.h>
#include <caml/roots.h>
#if !BOXROOT_CONSERVATIVE
#include <caml/major_gc.h>
#include <caml/minor_gc.h>
#endif

#if defined(Max_domains_max)
_Static_assert(Max_domains_max <= BXR_MAX_DOMAINS, "a record for each identity of a domain");
#elif defined(Max_domains)
_Static_assert(Max_domains <= BXR_MAX_DOMAINS, "a record for each identity of a domain");
#else
#error "This version of OCaml does not tell how many domains there can be"
#endif

static bxr_callbacks const *volatile callbacks; /* set once, before the hooks that use it; volatile: see when_loaded */
static scan_roots_hook earlier_scan;
static caml_timing_hook earlier_end;
#if !BOXROOT_CONSERVATIVE
static caml_timing_hook earlier_minor_end;
static bool minor_end_left;
#if BXR_RUNTIME_PACES_SLICES
static caml_timing_hook earlier_slice;
static bool slice_left;
#endif
#endif
static bool attached, scan_left; /* *_left: wrapped by another library when we detached */
static bool end_in_place, end_from_the_start; /* the hook for the end of a domain; since before OCaml started */

static void scan_hook(scanning_action action, scanning_action_flags flags, void *data, caml_domain_state *domain)
{
  scan_roots_hook earlier = bxr_load_relaxed(&earlier_scan);
  if (earlier != NULL) earlier(action, flags, data, domain);
  if (!bxr_load_acquire(&attached)) return;
  bxr_visitor visitor = { (void (*)(void))action, data };
  unsigned id = (unsigned)domain->id;
#if BOXROOT_CONSERVATIVE
  bxr_runtime_conservative_scan(callbacks, id, (flags & SCANNING_ONLY_YOUNG_VALUES) != 0, &visitor);
#else
  if ((flags & SCANNING_ONLY_YOUNG_VALUES) != 0) callbacks->minor(id, &visitor);
  else if (action == &caml_darken) callbacks->cycle_start(id, &visitor);
  else callbacks->all(id, &visitor);
#endif
}

/* Relaxed: see end_hook. */
static void call_earlier(caml_timing_hook const *earlier)
{
  caml_timing_hook hook = bxr_load_relaxed(earlier);
  if (hook != NULL) hook();
}

static bool shut_down; /* (atomic) */
bool bxr_runtime_is_shutting_down(void) { return bxr_load_acquire(&shut_down); }
bool bxr_runtime_has_shut_down(void) { return bxr_load_acquire(&shut_down) || bxr_runtime_end_reached(); }

static void domain_ends(void)
{
  bool alone = caml_domain_alone();
  if (alone) bxr_store_release(&shut_down, true);
  call_earlier(&earlier_end);
  if (bxr_load_acquire(&attached)) callbacks->domain_end(bxr_runtime_domain());
  if (!alone) bxr_runtime_exit_begin();
}

#if !BOXROOT_CONSERVATIVE
static void minor_collection_ends(void)
{
  call_earlier(&earlier_minor_end);
  if (!bxr_load_acquire(&attached)) return;
  bxr_runtime_exit_again();
  if (BOXROOT_PACING) bxr_runtime_pace_minor(callbacks);
}

#if BXR_RUNTIME_PACES_SLICES
static void slice_begins(void)
{
  call_earlier(&earlier_slice);
  if (bxr_load_acquire(&attached)) bxr_runtime_pace_slice(callbacks);
}
#endif
#endif

/* The runtime reads the timing hooks with a relaxed load before it calls them. With the fence, what attach wrote before
   it published the hook is seen behind it. (The scanning hook is read by a sequentially consistent load.) */
static void end_hook(void)
{
  bxr_fence_acquire();
  domain_ends();
}
#if !BOXROOT_CONSERVATIVE
static void minor_end_hook(void)
{
  bxr_fence_acquire();
  minor_collection_ends();
}
#if BXR_RUNTIME_PACES_SLICES
static void slice_hook(void)
{
  bxr_fence_acquire();
  slice_begins();
}
#endif
#endif

/* Puts `ours` in a hook. A thread that finds it there finds *earlier set: it is written before, and the hook is
   published with release. While another library changes the hook at the same time, this is repeated. */
#define PUT_IN_FRONT(hook, ours, earlier, type) \
  do { \
    type before = bxr_hook_load_relaxed(hook); \
    do bxr_store_relaxed(earlier, before); \
    while (!bxr_hook_cas_release(hook, &before, ours)); \
  } while (0)

static void watch_ends_of_domains(bool from_the_start)
{
  PUT_IN_FRONT(&caml_domain_terminated_hook, end_hook, &earlier_end, caml_timing_hook);
  end_in_place = true;
  end_from_the_start = from_the_start;
}

/* What the constructor below reaches is in programs that are linked with the library and use nothing of it, which may
   be without OCaml (tests of Rust crates, where the linker drops the rest). So it does not lead to the rest by anything
   but pointers that are set later, and that are volatile, or else compilers know what they are. */
#pragma weak caml_domain_terminated_hook
#pragma weak caml_num_domains_running
#if defined(HAS_FULL_THREAD_VARIABLES)
#pragma weak caml_state
#endif

/* If the library comes into the process before OCaml has started, no domain ends unseen. The runtime's hooks are static
   variables, and it does not set this one. Loaded later, the library waits for its first use: it may be unloaded
   unused, when another library has wrapped its hook, and nothing would tell. */
__attribute__((constructor)) static void when_loaded(void)
{
  if (&caml_domain_terminated_hook == NULL || !bxr_runtime_end_reached()) return;
  watch_ends_of_domains(true);
  bxr_runtime_exit_watch_from_the_start();
}

/* A hook in an object that is unloaded must not stay. In one that is still attached nothing can be done, and at the end
   of the process nothing need be. */
__attribute__((destructor(101))) static void when_hooks_unloaded(void)
{
  caml_timing_hook end = end_hook;
  bxr_runtime_exit_unload();
  if (end_from_the_start && !bxr_load_acquire(&attached))
    (void)bxr_hook_cas_release(&caml_domain_terminated_hook, &end, bxr_load_relaxed(&earlier_end));
}

void bxr_runtime_attach(bxr_callbacks const *c)
{
  callbacks = c;
  bxr_runtime_exit_prepare();
  bxr_store_release(&attached, true);
  if (!scan_left) PUT_IN_FRONT(&caml_scan_roots_hook, scan_hook, &earlier_scan, scan_roots_hook);
  if (!end_in_place) {
    watch_ends_of_domains(false);
    bxr_runtime_exit_watch();
  }
#if !BOXROOT_CONSERVATIVE
  if (!minor_end_left) PUT_IN_FRONT(&caml_minor_gc_end_hook, minor_end_hook, &earlier_minor_end, caml_timing_hook);
#if BXR_RUNTIME_PACES_SLICES
  if (!slice_left) PUT_IN_FRONT(&caml_major_slice_begin_hook, slice_hook, &earlier_slice, caml_timing_hook);
#endif
#endif
}

/* A hook that another library has wrapped stays, and goes on calling the earlier one, so the object that it is in must
   stay too. The earlier one is never changed while
   ours can be reached: not here, where a thread may be in our hook, nor when the library attaches again with the hook
   in its place. */
void bxr_runtime_detach(void)
{
  scan_roots_hook scan = scan_hook;
  caml_timing_hook end = end_hook;
  bxr_store_release(&attached, false);
  if (!end_from_the_start &&
      bxr_hook_cas_release(&caml_domain_terminated_hook, &end, bxr_load_relaxed(&earlier_end))) {
    end_in_place = false;
    bxr_runtime_exit_unwatch();
  }
  scan_left = !bxr_hook_cas_release(&caml_scan_roots_hook, &scan, bxr_load_relaxed(&earlier_scan));
  bool left = scan_left || (end_in_place && bxr_hook_load_relaxed(&caml_domain_terminated_hook) != end_hook);
#if !BOXROOT_CONSERVATIVE
  caml_timing_hook minor_end = minor_end_hook;
  minor_end_left = !bxr_hook_cas_release(&caml_minor_gc_end_hook, &minor_end, bxr_load_relaxed(&earlier_minor_end));
  left |= minor_end_left;
#if BXR_RUNTIME_PACES_SLICES
  caml_timing_hook slice = slice_hook;
  slice_left = !bxr_hook_cas_release(&caml_major_slice_begin_hook, &slice, bxr_load_relaxed(&earlier_slice));
  left |= slice_left;
#endif
#endif
  if (left) bxr_object_pin();
}

void bxr_runtime_check_lock(void) {}
bool bxr_runtime_may_end_unseen(void) { return false; }
unsigned bxr_runtime_domain(void) { return (unsigned)bxr_runtime_state()->id; }
bool bxr_runtime_is_only_domain(void) { return caml_domain_alone(); }
bool bxr_runtime_is_terminating(void) { return caml_domain_is_terminating() && !caml_domain_alone(); }
#endif
