/* SPDX-License-Identifier: MIT */
/* Scanning: what the garbage collector asks of the library. bxr_runtime_attach is given this table of functions, so
   that the modules that implement runtime.h depend on nothing above them. */
#ifndef BXR_SCAN_H
#define BXR_SCAN_H

#include "runtime.h"

BXR_INTERNAL_DATA bxr_callbacks const bxr_scan_callbacks;

#endif
