/* SPDX-License-Identifier: MIT */
/* What the redirected units share: minor heaps, static data. */
#include "prelude.h"
#include "outheap.h"
#include "ranges.h"
#include "settings.h"
#include "space.h"

/* A program that declares the interface weak shall find it: its units are in the archive, but such a declaration does not pull them out. */
__attribute__((used)) static struct {
  enum outheap_kind (*classify)(void const *);
  void (*statistics)(struct outheap_statistics *);
  size_t (*report)(size_t, void (*)(void const *, void const *), void const *);
} const oh_interface = {outheap_classify, outheap_statistics, outheap_report};

static uintptr_t round_up(uintptr_t bytes) { return (bytes + OH_PAGE - 1) & -OH_PAGE; }

/* Memory that holds blocks with their headers. A pointer may be equal to its end: an empty block. A failure to extend the fine table makes static data opaque to polymorphic operations: not acceptable in silence. */
void oh_declare_static(void const *begin, void const *end)
{
  if (begin < end && oh_ranges_add((uintptr_t)begin + sizeof(header_t), (uintptr_t)end + sizeof(header_t), OH_HOLDS_VALUES, false) != 0)
    caml_fatal_error("Outheap: no memory to declare static data");
}

void oh_declare_weak_values(void);

#ifdef NATIVE_CODE
struct segment { char *begin, *end; };
extern struct segment caml_data_segments[];
#endif

/* Called before the first value exists. */
void oh_declare_runtime_values(void)
{
  oh_declare_static((char const *)caml_atom(0) - sizeof(header_t), (char const *)caml_atom(255));
  oh_declare_weak_values();
#ifdef NATIVE_CODE
  for (struct segment *s = caml_data_segments; s->begin; s++) oh_declare_static(s->begin, s->end);
#endif
}

/* The reservation for all domains. The runtime makes one at start, and a new one for larger minor heaps. */
void *oh_minor_heaps_reserve(uintptr_t bytes)
{
  static bool declared;
  oh_start();
  if (!declared) {
    declared = true;
    oh_declare_runtime_values();
  }
  return oh_pages_take(OH_SPACE_YOUNG, round_up(bytes), false, NULL);
}

void oh_minor_heaps_release(void *start, uintptr_t bytes) { oh_pages_give(OH_SPACE_YOUNG, start, round_up(bytes)); }

void *oh_minor_heap_commit(void *start, uintptr_t bytes) { return oh_pages_commit(OH_SPACE_YOUNG, start, bytes) ? start : NULL; }

void oh_minor_heap_discard(void *start, uintptr_t bytes)
{
  if (bytes != 0) oh_pages_discard(OH_SPACE_YOUNG, start, bytes);
}
