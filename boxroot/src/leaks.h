/* SPDX-License-Identifier: MIT */
/* The checked build: reports of the roots that are live, on request, at the end of the program, and at teardown. */
#ifndef BXR_LEAKS_H
#define BXR_LEAKS_H

#include "account.h"

#if BOXROOT_DEBUG
/* Prints how many roots are live and where they were created; `when` ends the heading "N roots are live…". */
BXR_INTERNAL void bxr_leaks_report(char const *when);

/* The library was set up; it is being torn down. Where BOXROOT_LEAKS asks for it, the roots that are left are
   reported. */
BXR_INTERNAL void bxr_leaks_setup(void);
BXR_INTERNAL void bxr_leaks_teardown(void);
#else
static inline void bxr_leaks_setup(void) {}
static inline void bxr_leaks_teardown(void) {}
#endif

#endif
