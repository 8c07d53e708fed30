/* SPDX-License-Identifier: MIT */
/* Exceptions as text.

   Stock   reads the tag of each argument that is not an immediate.
   Here    an opaque foreign argument is printed as `_`. */
#include "prelude.h"

#undef Tag_val
#define Tag_val(v) oh_prelude_tag_for_operation(v)

#include <printexc.c>
