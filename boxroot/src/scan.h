/* SPDX-License-Identifier: MIT */
/* What the garbage collector asks of the library. */
#ifndef BXR_SCAN_H
#define BXR_SCAN_H

#include "domain.h"

BXR_INTERNAL_DATA bxr_callbacks const bxr_scan_callbacks;

#endif
