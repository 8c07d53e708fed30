/* SPDX-License-Identifier: MIT */
/* Reports: who holds OCaml values. */
#ifndef BXR_REPORT_H
#define BXR_REPORT_H

#include "base.h"

/* The library was set up: does what BOXROOT_REPORT asks for. */
BXR_INTERNAL void bxr_report_setup(void);

/* A minor collection is over for this domain, and others may be in it: makes the report that a signal asked for. */
BXR_INTERNAL void bxr_report_in_scan(void);

#endif
