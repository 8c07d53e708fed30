/* SPDX-License-Identifier: MIT */
/* The status of the library, and why the last call of a thread failed. */
#ifndef BXR_STATUS_H
#define BXR_STATUS_H

#include "base.h"

enum { BXR_STATUS_STARTING = 100 }; /* internal, between BOXROOT_NOT_SETUP or BOXROOT_TORE_DOWN and BOXROOT_RUNNING */
BXR_INTERNAL_DATA int bxr_status;   /* (atomic) */

/* Whether the library was torn down, and has not been set up since. */
static inline bool bxr_status_is_torn_down(void) { return bxr_load_acquire(&bxr_status) == BOXROOT_TORE_DOWN; }

typedef enum {
  BXR_FAIL_NEVER,
  BXR_FAIL_NO_LOCK,
  BXR_FAIL_NO_MEMORY,
  BXR_FAIL_TORE_DOWN,
  BXR_FAIL_CLOSED,      /* a local was to be made in a frame that is closed */
  BXR_FAIL_LAZY,        /* a weak root was to hold a lazy value */
  BXR_FAIL_NOT_FIRST,   /* weak roots cannot be made on this domain */
  BXR_FAIL_SHUT_DOWN,   /* nor at the end of OCaml's shutdown */
  BXR_FAIL_WIDTH,       /* a wide root was to have no slot, or too many */
  BXR_FAIL_OTHER_COPY,  /* a root of a storage of another copy of the library was to be modified */
  BXR_FAIL_OTHER_OCAML, /* the runtime is of another version */
} bxr_fail_reason;

/* Sets errno, and what boxroot_error_string says to this thread. The result is false. */
BXR_INTERNAL bool bxr_fail(bxr_fail_reason reason);

#endif
