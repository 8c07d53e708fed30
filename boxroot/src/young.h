/* SPDX-License-Identifier: MIT */
/* The search for young values among slots. */
#ifndef BXR_YOUNG_H
#define BXR_YOUNG_H

#include "runtime.h"

/* Visits each of the n slots that holds a young block. The visitor may change the slot that it is given.
   Cost: a test per slot, four at a time where AVX2 is there. */
BXR_INTERNAL void bxr_young_scan(uintptr_t *slots, uint32_t n, bxr_minor_range range, bxr_visitor const *visitor);

#endif
