/* SPDX-License-Identifier: MIT */
/* Exceptions as text.

   Stock   reads the header of each argument that is not an immediate, even if it is foreign.
   Here    an opaque foreign argument is printed as `_`. */
#include "prelude.h"

#undef Tag_val
#define Tag_val(v) oh_prelude_tag(v)

#include <printexc.c>
