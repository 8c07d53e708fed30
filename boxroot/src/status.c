/* SPDX-License-Identifier: MIT */
#include "status.h"

BXR_INTERNAL_DATA_HERE int bxr_status_word = BOXROOT_NOT_SETUP;
static BXR_THREAD_LOCAL bxr_status_reason last_failure BXR_TLS_MODEL;

int boxroot_status(void)
{
  int s = bxr_load_acquire(&bxr_status_word);
  return s == BXR_STATUS_STARTING ? BOXROOT_NOT_SETUP : s;
}

bool bxr_status_fail(bxr_status_reason reason)
{
  last_failure = reason;
  errno = reason == BXR_STATUS_NO_MEMORY ? ENOMEM : EPERM;
  return false;
}

char const *boxroot_error_string(void)
{
  switch (last_failure) {
  case BXR_STATUS_NO_LOCK:
    return "boxroot_create, boxroot_modify or boxroot_setup was called without holding the domain lock";
  case BXR_STATUS_NO_MEMORY: return "no memory for more roots";
  case BXR_STATUS_TORE_DOWN: return "boxroot_teardown has been called, and boxroot_setup has not been called since";
  default: return "no call of this thread has failed";
  }
}
