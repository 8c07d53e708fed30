/* SPDX-License-Identifier: MIT */
/* The quarantine of the checked build: deleted slots wait there, first in, first out, before they are used again, so
   that a use of a deleted root is recognised for as long. One for the whole program; any thread may call these
   functions, and none waits. */
#ifndef BXR_QUARANTINE_H
#define BXR_QUARANTINE_H

#include "account.h"

#if BOXROOT_DEBUG
/* The deletion of r is carried out, by the owner of its pool; no marker needs its value. Either the slot goes
   into quarantine, and the result is true; when that is full, the slot that has been there longest leaves it and is
   passed to `release`, which has to see to it that sooner or later the owner of *its* pool comes here with it. Or it
   has just come from there, and may go on the free list: false. */
BXR_INTERNAL bool bxr_quarantine_put(boxroot r, void (*release)(boxroot));

/* The same for slots of one word of a bitmap: bit i is first[i]. The result: those that went into quarantine. */
BXR_INTERNAL uint64_t bxr_quarantine_put_bits(uintptr_t *first, uint64_t bits, void (*release)(boxroot));

/* Passes all slots in quarantine to `release`. True when there was one. */
BXR_INTERNAL bool bxr_quarantine_flush(void (*release)(boxroot));

/* The library is torn down: the quarantine is empty. No other thread may use the library. */
BXR_INTERNAL void bxr_quarantine_reset(void);
#else
static inline bool bxr_quarantine_put(boxroot r, void (*release)(boxroot)) { (void)r; (void)release; return false; }
static inline uint64_t bxr_quarantine_put_bits(uintptr_t *first, uint64_t bits, void (*release)(boxroot))
{
  (void)first;
  (void)bits;
  (void)release;
  return 0;
}
static inline bool bxr_quarantine_flush(void (*release)(boxroot)) { (void)release; return false; }
static inline void bxr_quarantine_reset(void) {}
#endif

#endif
