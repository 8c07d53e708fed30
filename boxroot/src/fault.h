/* SPDX-License-Identifier: MIT */
/* Messages that end the program, and assertions (checked build only). BXR_ASSERT states what must hold; in a release
   build it is not evaluated and tells the compiler nothing, so a broken invariant never turns into undefined behaviour
   that the checked build would catch. */
#ifndef BXR_FAULT_H
#define BXR_FAULT_H

#include "base.h"

/* Prints "boxroot: " and the message on the standard error output and aborts. */
BXR_INTERNAL __attribute__((noreturn, format(printf, 1, 2))) void bxr_fault(char const *format, ...);

#if BOXROOT_DEBUG
#define BXR_ASSERT(c) ((c) ? (void)0 : bxr_fault("assertion failed: %s (%s:%d)", #c, __FILE__, __LINE__))
#else
#define BXR_ASSERT(c) ((void)sizeof(!(c)))
#endif

#endif
