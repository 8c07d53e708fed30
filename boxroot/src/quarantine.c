/* SPDX-License-Identifier: MIT */
#include "quarantine.h"

#if BOXROOT_DEBUG
_Static_assert(BOXROOT_QUARANTINE >= 1 && (BOXROOT_QUARANTINE & (BOXROOT_QUARANTINE - 1)) == 0, "a power of two");
_Static_assert(BXR_DELETED_WORD % 2 == 1, "not a pointer");

/* A ring. Each call draws a number, puts its slot in that place, and takes out the slot that is there: the one that has
   been in longest, or nearly so when several threads come at once. */
static boxroot ring[BOXROOT_QUARANTINE];
static uint64_t drawn;

static void let_go(boxroot r, void (*release)(boxroot))
{
  if (*(uintptr_t volatile *)r != BXR_DELETED_WORD) bxr_account_fault_written(r);
  bxr_account_set_state((uintptr_t *)r, BXR_SLOT_RELEASED);
  release(r);
}

bool bxr_quarantine_put(boxroot r, void (*release)(boxroot))
{
  bxr_slot_state state = bxr_account_state((uintptr_t *)r);
  if (state == BXR_SLOT_RELEASED) {
    bxr_account_set_state((uintptr_t *)r, BXR_SLOT_FREE);
    return false;
  }
  if (state != BXR_SLOT_DELETED) bxr_fault("assertion failed: slot %p freed in state %d", (void *)r, (int)state);
  *(uintptr_t *)r = BXR_DELETED_WORD;
  bxr_account_set_state((uintptr_t *)r, BXR_SLOT_QUARANTINED);
  boxroot oldest = bxr_exchange_acq_rel(&ring[bxr_fetch_add_acq_rel(&drawn, 1) % BOXROOT_QUARANTINE], r);
  if (oldest != NULL) let_go(oldest, release);
  return true;
}

uint64_t bxr_quarantine_put_bits(uintptr_t *first, uint64_t bits, void (*release)(boxroot))
{
  uint64_t kept = 0;
  for (; bits != 0; bits &= bits - 1)
    if (bxr_quarantine_put((boxroot)(first + __builtin_ctzll(bits)), release)) kept |= bits & -bits;
  return kept;
}

bool bxr_quarantine_flush(void (*release)(boxroot))
{
  bool any = false;
  for (size_t i = 0; i < BOXROOT_QUARANTINE; i++) {
    boxroot r = bxr_exchange_acq_rel(&ring[i], (boxroot)NULL);
    if (r == NULL) continue;
    any = true;
    let_go(r, release);
  }
  return any;
}

void bxr_quarantine_reset(void)
{
  for (size_t i = 0; i < BOXROOT_QUARANTINE; i++) bxr_store_relaxed(&ring[i], (boxroot)NULL);
}
#endif
