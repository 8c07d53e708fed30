/* SPDX-License-Identifier: MIT */
/* The slow paths of creation, deletion and modification, which boxroot/inline.h declares for the inline functions. In
   the checked build all calls take them (checked.c), and they are internal: another copy of the library cannot provide
   its own for them. */
#ifndef BXR_SLOW_H
#define BXR_SLOW_H

#include "base.h"

#if BOXROOT_DEBUG
BXR_INTERNAL boxroot bxr_create_slow(value v);
BXR_INTERNAL void bxr_delete_slow(boxroot r);
BXR_INTERNAL bool bxr_modify_slow(boxroot *r, value v);
#endif

#endif
