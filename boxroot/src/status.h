/* SPDX-License-Identifier: MIT */
/* The status of the library, and why a call failed. */
#ifndef BXR_STATUS_H
#define BXR_STATUS_H

#include "atomic.h"

enum { BXR_STATUS_STARTING = 100 }; /* internal, between NOT_SETUP or TORE_DOWN and RUNNING */
BXR_INTERNAL_DATA int bxr_status_word; /* (atomic) */

/* Changes the status. False when it was not, or is not any more, `from`. */
static inline bool bxr_status_change(int from, int to)
{
  int s = from;
  while (!bxr_cas_seq_cst(&bxr_status_word, &s, to))
    if (s != from) return false;
  return true;
}

/* Why a call of this thread failed: for errno and boxroot_error_string. The result is false. */
typedef enum {
  BXR_STATUS_NO_FAILURE,
  BXR_STATUS_NO_LOCK,
  BXR_STATUS_NO_MEMORY,
  BXR_STATUS_TORE_DOWN
} bxr_status_reason;
BXR_INTERNAL bool bxr_status_fail(bxr_status_reason reason);

#endif
