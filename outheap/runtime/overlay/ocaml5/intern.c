/* SPDX-License-Identifier: MIT */
/* Unmarshalling. The text of a function is changed by intern.edits.

   Stock   what is read takes its room block by block.
   Here    there is room for all of it before, if memory is limited (cycle.h). */
#include "prelude.h"
#include "cycle.h"

#include <intern.c>
