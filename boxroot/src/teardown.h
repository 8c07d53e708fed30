/* SPDX-License-Identifier: MIT */
/* Teardown: what other modules have to do with it. */
#ifndef BXR_TEARDOWN_H
#define BXR_TEARDOWN_H

#include "base.h"

/* From now on boxroot_teardown calls f first; there is one such function. */
BXR_INTERNAL void bxr_teardown_first(void (*f)(void));

#endif
