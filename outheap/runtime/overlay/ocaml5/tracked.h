/* SPDX-License-Identifier: MIT */
/* Tracked regions (region.h), as this runtime sees them. */
#ifndef OH_TRACKED_H
#define OH_TRACKED_H

#include "prelude.h"
#include <caml/globroots.h>
#include <caml/roots.h>

/* For struct oh_track_runtime. */
void oh_tracked_darken(uintptr_t v);
void oh_tracked_forget(uintptr_t begin, uintptr_t end);
bool oh_tracked_more_to_mark(void);

/* One domain visits the global roots for verification or compaction. The slots of all tracked regions are visited with
   them. */
struct oh_tracked_visit { scanning_action f; void *data; };
static void __attribute__((unused)) oh_tracked_visit(void *data, uintptr_t v, uintptr_t *slot)
{
  struct oh_tracked_visit const *x = data;
  x->f(x->data, (value)v, (value volatile *)slot);
}

#endif
