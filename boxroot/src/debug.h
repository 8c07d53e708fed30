/* SPDX-License-Identifier: MIT */
/* Assertions (checked build only) and fault messages. BXR_ASSERT states what must hold; in a release build it is not evaluated and
   tells the compiler nothing, so a broken invariant never turns into undefined behaviour that the checked build would catch. */
#ifndef BXR_DEBUG_H
#define BXR_DEBUG_H

#include "platform.h"

#if BOXROOT_DEBUG
#define BXR_ASSERT(c) ((c) ? (void)0 : bxr_fault("assertion failed: %s (%s:%d)", #c, __FILE__, __LINE__))
#else
#define BXR_ASSERT(c) ((void)sizeof(!(c)))
#endif

#endif
