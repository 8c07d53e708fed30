/* SPDX-License-Identifier: MIT */
/* The module Gc. The text of one function is changed by gc_ctrl.edits.

   Stock   large blocks go back to malloc, and from there, as a rule, to the system when they are swept.
   Here    they go back when they were free for long (major_gc.c), and at the end of Gc.full_major. */
#include "prelude.h"
#include "block.h"

#include <gc_ctrl.c>
