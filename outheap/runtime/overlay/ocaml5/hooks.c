/* SPDX-License-Identifier: MIT */
#include "hooks.h"
#include "header.h"
#include "os.h"
#include "outheap.h"
#include "outheap_marker.h"
#include "pool.h"
#include "prelude.h"
#include "region.h"
#include "settings.h"
#include "space.h"
#include "start.h"
#include "stats.h"
#include "watch.h"
#include "tracked.h"
#include "program.h"
#include "weak.h"
#include <caml/version.h>

/* Pulls the public functions into every program, for units that declare them weak: a weak declaration alone does
   not. */
__attribute__((used)) static struct {
  enum outheap_kind (*classify)(void const *);
  void (*statistics)(struct outheap_statistics *);
  size_t (*report)(size_t, void (*)(void const *, void const *), void const *);
  bool (*set_opaque)(bool);
  bool (*follows)(void const *);
  void (*stop_helper)(void);
} const interface = {outheap_classify, outheap_statistics, outheap_report, outheap_set_opaque, outheap_marker_follows,
                     outheap_stop_helper};

#ifdef NATIVE_CODE
struct segment { char *begin, *end; };
extern struct segment caml_data_segments[];
#endif

#ifdef NATIVE_CODE
#define TEXT(word) #word
#define DIGITS(word) TEXT(word)
#ifndef OH_STDLIB /* outheap-build: the digest of this compiler's interface Stdlib */
#define OH_STDLIB unknown
#endif
extern char caml_globals_map[];
#endif

/* Bytecode names the version that it is for itself. */
static void check_version(void)
{
#ifdef NATIVE_CODE
  oh_version_check(caml_globals_map, DIGITS(OH_STDLIB), OCAML_VERSION_STRING);
#endif
}

/* In the flavour that counts. */
#if OH_COUNT
static void end_of_slice(void) { oh_stats_slice(oh_watch_output()); }
#endif
static void watch_slices(void)
{
#if OH_COUNT
  if (oh_settings.slices) caml_major_slice_end_hook = end_of_slice;
#endif
}

static void declare_static_data(void)
{
  oh_prelude_declare_values((char const *)caml_atom(0) - sizeof(header_t), (char const *)caml_atom(255));
  oh_weak_declare();
#ifdef NATIVE_CODE
  for (struct segment *s = caml_data_segments; s->begin; s++) oh_prelude_declare_values(s->begin, s->end);
  uintptr_t begin, end;
  if (caml_data_segments[0].begin && oh_os_image((uintptr_t)caml_data_segments[0].begin, &begin, &end))
    oh_header_set_image(begin, end);
#endif
}

void oh_hooks_start(void)
{
  static bool started;
  if (started) return;
  started = true;
  check_version();
#ifndef OH_STOCK_MARKING
  oh_region_has_cycles = true;
  oh_track_runtime = (struct oh_track_runtime){ &oh_tracked_darken, &oh_tracked_forget, NULL };
#if !OH_COUNT /* there the loop is the runtime's */
  oh_track_runtime.more_to_mark = &oh_tracked_more_to_mark;
#endif
#endif
  oh_pool_rising = OCAML_VERSION >= 50500; /* before, new pools are used from their ends */
  oh_start();
  declare_static_data();
  watch_slices();
}

void *oh_hooks_reserve_minor_heaps(uintptr_t bytes)
{
  bytes = OH_ROUND_UP(bytes, OH_PAGE);
  void *range = oh_space_take_range(OH_SPACE_YOUNG, bytes);
  return range != NULL ? range : oh_space_alloc(OH_SPACE_YOUNG, bytes, false, NULL);
}

void oh_hooks_release_minor_heaps(void *start, uintptr_t bytes)
{
  if (!oh_space_give_range(OH_SPACE_YOUNG, start)) oh_space_free(OH_SPACE_YOUNG, start, OH_ROUND_UP(bytes, OH_PAGE));
}

void *oh_hooks_commit_minor_heap(void *start, uintptr_t bytes)
{
  return oh_space_commit(OH_SPACE_YOUNG, start, bytes) ? start : NULL;
}

void oh_hooks_purge_minor_heap(void *start, uintptr_t bytes)
{
  if (bytes != 0) oh_space_purge(OH_SPACE_YOUNG, start, bytes);
}
