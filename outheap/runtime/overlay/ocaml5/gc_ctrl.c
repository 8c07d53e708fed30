/* SPDX-License-Identifier: MIT */
/* The module Gc. The texts of some functions are changed by gc_ctrl.edits.

   Stock   large blocks go back to malloc, and from there, as a rule, to the system when they are swept.
   Here    they go back when they were free for long (major_gc.c), and at the end of Gc.full_major.
   Stock   max_overhead means nothing.
   Here    it does, with memory=follow or a limit (pace.h). */
#include "prelude.h"
#include "block.h"
#include "pace.h"
#include "limit.h"
#include "settings.h"

static bool is_heeded(void) { return oh_settings.reclaim || oh_limit_bytes != 0; }
static void set_overhead(value percent)
{
  if (!is_heeded() || Is_block(percent) || Long_val(percent) < 0) return;
  oh_pace_set_overhead((size_t)Long_val(percent));
}
static value overhead(void) { return Val_long(is_heeded() ? oh_pace_overhead() : 0); }

#include <gc_ctrl.c>
