/* SPDX-License-Identifier: MIT */
/* What every file of the library is compiled with; all others include it first. Linkage of names that are not part of
   the interface: static in the single compilation unit (all.c), so that two copies of the library, or two versions,
   never bind to each other; hidden in their shared object when files are compiled one by one. */
#ifndef BXR_BASE_H
#define BXR_BASE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef CAML_NAME_SPACE
#define CAML_NAME_SPACE
#endif
#ifndef CAML_INTERNALS
#define CAML_INTERNALS
#endif
#define BXR_LIBRARY

#include <boxroot.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef BXR_ONE_UNIT
#define BXR_INTERNAL static __attribute__((unused))
#define BXR_INTERNAL_DATA static
#define BXR_INTERNAL_DATA_HERE static
#else
#define BXR_INTERNAL __attribute__((visibility("hidden")))
#define BXR_INTERNAL_DATA extern __attribute__((visibility("hidden")))
#define BXR_INTERNAL_DATA_HERE
#endif

#endif
