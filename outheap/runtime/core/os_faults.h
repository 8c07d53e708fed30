/* SPDX-License-Identifier: MIT */
/* What tests do to requests to the system (os.h: OH_FAULTS), for the files that make them. */
#ifndef OH_OS_FAULTS_H
#define OH_OS_FAULTS_H

#include "base.h"
#include "os.h"
#include <errno.h>

#ifdef OH_FAULTS
static inline void oh_os_tell_purging(void)
{
  if (oh_os_purging != NULL) oh_os_purging();
}
static inline void oh_os_tell_reserved(uintptr_t base, size_t bytes)
{
  if (oh_os_reserved != NULL) oh_os_reserved(base, bytes);
}
static inline bool oh_os_fails(void)
{
  long n = oh_load_relaxed(&oh_os_fail_after);
  while (n > 0 && !oh_cas_seq_cst(&oh_os_fail_after, &n, n - 1)) {}
  if (n < 0 || n == 1) errno = ENOMEM;
  return n < 0 || n == 1;
}
#else
static inline bool oh_os_fails(void) { return false; }
static inline void oh_os_tell_reserved(uintptr_t base, size_t bytes) { (void)base, (void)bytes; }
static inline void oh_os_tell_purging(void) {}
#endif

#endif
