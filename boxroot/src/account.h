/* SPDX-License-Identifier: MIT */
/* The account of the checked build: what every slot is at the moment, where its last root was created and deleted,
   how many roots are live, and the quarantine. Knows regions, pools and slots by their addresses, and nothing of
   domains and locks: every function may be called by any thread, with or without a lock, at any time; none waits for
   another.

   A slot's life:

     free ─create─► live ─delete─► deleted ─fold─► quarantined ─N others later─► released ─► free
                     │
                     └─teardown─► void ─create─► live

   deleted      the program has given the root up; the deletion is still to be carried out, and the slot keeps its value till then
   quarantined  carried out: no marker needs the value, and the slot holds BXR_DELETED_WORD; N = BOXROOT_QUARANTINE
   released     out of the quarantine, on the way to the free list; a deletion that is deferred once more, if need be, but never
                quarantined again
   void         live when the library was torn down

   Invariants: a slot on a free list, or never used, is free or void; any other is live, deleted, quarantined or
   released (validated, with the next); a quarantined or released slot holds BXR_DELETED_WORD; the quarantine has at
   most N slots, all of them quarantined. */
#ifndef BXR_ACCOUNT_H
#define BXR_ACCOUNT_H

#include "pool.h"
#include "site.h"

#if BOXROOT_DEBUG
/* What a deleted slot reads as: odd, so that neither collector nor program takes it for a pointer, and easily
   recognised. */
#define BXR_DELETED_WORD ((uintptr_t)0xdeadb0c5deadb0c5)

typedef enum {
  BXR_SLOT_FREE, BXR_SLOT_LIVE, BXR_SLOT_DELETED, BXR_SLOT_QUARANTINED, BXR_SLOT_RELEASED, BXR_SLOT_VOID
} bxr_slot_state;

/* Opens an account for the slots of a region, if there is none yet; they are free. False when there is no memory.
   With BOXROOT_STACKS=1 in the environment it also keeps, for each root, the calls that led to its creation and
   deletion. */
BXR_INTERNAL bool bxr_account_open(void *region);

/* The state of a slot, whose region must have an account. */
BXR_INTERNAL bxr_slot_state bxr_account_state(uintptr_t const *slot);

/* Faults unless r is live. `what` is the function that was given it, at `here`. */
BXR_INTERNAL void bxr_account_check(boxroot r, char const *what, bxr_site here);

/* r, a slot that is free or void, becomes live: created at `here`. */
BXR_INTERNAL void bxr_account_create(boxroot r, bxr_site here);

/* r becomes deleted, at `here`. Faults as bxr_account_check does, but with the name double delete. */
BXR_INTERNAL void bxr_account_delete(boxroot r, bxr_site here);

/* A modification has moved the root from `from` to `to`, which is live: `from` becomes deleted at `here`, and `to`
   counts as created where `from` was. */
BXR_INTERNAL void bxr_account_move(boxroot from, boxroot to, bxr_site here);

/* The deletion of r is carried out, by the owner of its pool; no marker needs its value. Either the slot goes
   into quarantine, and the result is true; when that is full, the slot that has been there longest leaves it and is
   passed to `release`, which has to see to it that sooner or later the owner of *its* pool comes here with it. Or it
   has just come from there, and may go on the free list: false. */
BXR_INTERNAL bool bxr_quarantine(boxroot r, void (*release)(boxroot));

/* The same for slots of one word of a bitmap: bit i is first[i]. The result: those that went into quarantine. */
BXR_INTERNAL uint64_t bxr_quarantine_bits(uintptr_t *first, uint64_t bits, void (*release)(boxroot));

/* Passes all slots in quarantine to `release`. True when there was one. */
BXR_INTERNAL bool bxr_quarantine_flush(void (*release)(boxroot));

/* The library is torn down: live slots are void, all others free; the quarantine is empty. No other thread may use
   the library. */
BXR_INTERNAL void bxr_account_void_all(void);

/* Whether a variable of the environment asks for something: it is there, not empty, and does not begin with 0. */
BXR_INTERNAL bool bxr_account_wanted(char const *variable);

/* The number of live slots. */
BXR_INTERNAL uint64_t bxr_account_live(void);

/* Prints where the live roots were created; `when` ends the heading "N roots are live…". */
BXR_INTERNAL void bxr_account_report(char const *when);
#else
static inline bool bxr_account_open(void *region) { (void)region; return true; }
static inline bool bxr_quarantine(boxroot r, void (*release)(boxroot)) { (void)r; (void)release; return false; }
static inline uint64_t bxr_quarantine_bits(uintptr_t *first, uint64_t bits, void (*release)(boxroot))
{
  (void)first;
  (void)bits;
  (void)release;
  return 0;
}
static inline bool bxr_quarantine_flush(void (*release)(boxroot)) { (void)release; return false; }
#endif

#endif
