/* SPDX-License-Identifier: MIT */
/* What tests do to requests to the system (OH_FAULTS), which os.c and os_sbrk.c make. */
#ifndef OH_OS_FAULTS_H
#define OH_OS_FAULTS_H

#include "base.h"
#include <errno.h>
#include <stdbool.h>

#ifdef OH_FAULTS
/* The nth of the next calls that can fail does fail; 0: none; negative: all. */
extern long oh_os_fail_after;
/* called when address space was reserved, before other code knows of it; NULL: none */
extern void (*oh_os_reserved)(uintptr_t base, size_t bytes);
extern bool oh_os_strict; /* as with vm.overcommit_memory=2 */
/* called before memory is purged; NULL: none */
extern void (*oh_os_purging)(void);

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
