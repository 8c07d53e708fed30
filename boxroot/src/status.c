/* SPDX-License-Identifier: MIT */
#include "status.h"

BXR_INTERNAL_DATA_HERE int bxr_status = BOXROOT_NOT_SETUP;

int boxroot_status(void)
{
  int s = bxr_load_acquire(&bxr_status);
  return s == BXR_STATUS_STARTING ? BOXROOT_NOT_SETUP : s;
}

static BXR_THREAD_LOCAL bxr_fail_reason last_failure BXR_TLS_MODEL;

bool bxr_fail(bxr_fail_reason reason)
{
  last_failure = reason;
  switch (reason) {
  case BXR_FAIL_NO_MEMORY: errno = ENOMEM; break;
  case BXR_FAIL_LAZY:
  case BXR_FAIL_WIDTH: errno = EINVAL; break;
  case BXR_FAIL_OTHER_OCAML:
  case BXR_FAIL_NOT_FIRST: errno = ENOTSUP; break;
  default: errno = EPERM;
  }
  return false;
}

char const *boxroot_error_string(void)
{
  switch (last_failure) {
  case BXR_FAIL_NO_LOCK:
    return "boxroot_create, boxroot_modify or boxroot_setup was called without holding the domain lock";
  case BXR_FAIL_NO_MEMORY: return "no memory for more roots";
  case BXR_FAIL_TORE_DOWN: return "boxroot_teardown has been called, and boxroot_setup has not been called since";
  case BXR_FAIL_CLOSED: return "boxroot_local_create was called with a frame that is closed";
  case BXR_FAIL_OTHER_COPY: return "a root in a storage of another copy of the library was to be modified";
  case BXR_FAIL_OTHER_OCAML:
    return "the library was compiled for OCaml " OCAML_VERSION_STRING
           ", and is linked with the runtime of another version";
  case BXR_FAIL_WIDTH: return "boxroot_wide_create was called for no slot, or for more than BOXROOT_WIDEST";
  case BXR_FAIL_LAZY:
    return "boxroot_weak_create, or boxroot_ephemeral_create for a key, was called with a lazy value, which the "
           "collector may replace by its result";
  case BXR_FAIL_NOT_FIRST:
#if !BXR_KNOWN_WEAK
    return "this version of OCaml is not among those that boxroot_weak_create and boxroot_ephemeral_create have been "
           "tested with";
#endif
    return "before OCaml 5.5, boxroot_weak_create and boxroot_ephemeral_create must be called on the first domain: the "
           "runtime loses the weak arrays and ephemerons of domains that end";
  case BXR_FAIL_SHUT_DOWN:
    return "boxroot_weak_create or boxroot_ephemeral_create was called by a finaliser that OCaml's shutdown runs at "
           "its end";
  default: return "no call of this thread has failed";
  }
}
