/* SPDX-License-Identifier: MIT */
/* The account of the checked build: an entry for each slot, which says what the slot is at the moment, and where its
   last root was created and deleted; with what depends on it: the quarantine of deleted slots, and reports of the roots
   that are live. It knows segments, pools and slots by their addresses, and nothing of domains and locks: every
   function may be called by any thread, with or without a lock, at any time; none waits for another.

   A slot's life:

     free ─create─► live ─delete─► deleted ─drain─► quarantined ─N others later─► released ─► free
                     │
                     └─teardown─► torn down ─create─► live

   deleted      The program has given the root up; the deletion is still to be carried out, and the slot keeps its value
                until then.
   quarantined  The deletion was carried out: no marker needs the value, and the slot holds BXR_DELETED_WORD. N is
                BOXROOT_QUARANTINE.
   released     The slot has left the quarantine and is on the way to the free list; its deletion may be deferred once
                more, but it is never quarantined again.
   torn down    The root was live when the library was torn down.

   Invariants: a slot on a free list, or never used, is free or torn down; any other is live, deleted, quarantined or
   released (validated, with the next); a quarantined or released slot holds BXR_DELETED_WORD; the quarantine has at
   most N slots, all of them quarantined. */
#ifndef BXR_ACCOUNT_H
#define BXR_ACCOUNT_H

#include "../pool.h"
#include "site.h"

#if BOXROOT_DEBUG
/* --- the entries of slots ----------------------------------------------------------------------------------------- */

/* What a deleted slot reads as: odd, so that neither collector nor program takes it for a pointer, and easily
   recognised. */
#define BXR_DELETED_WORD ((uintptr_t)0xdeadb0c5deadb0c5)

typedef enum {
  BXR_SLOT_FREE, BXR_SLOT_LIVE, BXR_SLOT_DELETED, BXR_SLOT_QUARANTINED, BXR_SLOT_RELEASED, BXR_SLOT_TORN_DOWN
} bxr_slot_state;

/* Opens an account for the slots of a segment, if there is none yet; they are free. False when there is no memory. With
   BOXROOT_STACKS=1 in the environment the account also keeps, for each root, the calls that led to its creation and
   deletion. */
BXR_INTERNAL bool bxr_account_open(void *segment);

/* The state of a slot, whose segment must have an account. */
BXR_INTERNAL bxr_slot_state bxr_account_state(uintptr_t const *slot);

/* The functions below act for the public call that this thread is in (site.h). Messages name its function and site.

   Faults unless r is live. False: r is *void*, it was live when the library was torn down, and that has not been set up
   again; the library accepts it as long. */
BXR_INTERNAL bool bxr_account_check(boxroot r);

/* Makes r, a slot that is free or torn down, live. */
BXR_INTERNAL void bxr_account_create(boxroot r);

/* Makes r deleted. Faults as bxr_account_check does, but with the name double delete. False: r is void. */
BXR_INTERNAL bool bxr_account_delete(boxroot r);

/* The n slots from `slots` were cleared: those that are live become deleted. */
BXR_INTERNAL void bxr_account_delete_all(uintptr_t const *slots, uint32_t n);

/* The n slots from `slots` are to be free without having been put on the free list. False, and nothing happens, if one
   of them is in the quarantine, or on its way from there. */
BXR_INTERNAL bool bxr_account_free_all(uintptr_t const *slots, uint32_t n);

/* A modification has moved the root from `from` to `to`, which is live: `from` becomes deleted, and `to` counts as
   created where `from` was. */
BXR_INTERNAL void bxr_account_move(boxroot from, boxroot to);

/* Ends the program: the function was called by a thread without the lock that it needs. */
BXR_INTERNAL __attribute__((noreturn)) void bxr_account_fault_no_lock(boxroot r);

/* The library is torn down: live slots become torn down, all others free. No other thread may use the library. */
BXR_INTERNAL void bxr_account_reset(void);

/* The library is being unloaded: frees all memory of the account. */
BXR_INTERNAL void bxr_account_release(void);

/* The number of live roots of the program. */
BXR_INTERNAL uint64_t bxr_account_live(void);

/* From now on the live roots of the program are also those that `list` finds, in no slots of their own: its result is
   how many, and it writes where at most `most` of them were created. There is one such function. */
BXR_INTERNAL void bxr_account_include(size_t (*list)(bxr_site_count *sites, size_t most));

/* --- the quarantine ----------------------------------------------------------------------------------------------- */

/* Deleted slots wait in the quarantine, first in, first out, before they are used again, so that a use of a deleted
   root is recognised for as long. There is one quarantine for the whole program.

   The owner of r's pool calls bxr_quarantine_put when it carries out the deletion of r, whose value no marker needs.
   The result is true when the slot goes into quarantine. If that is full, the slot that has been there longest leaves
   it and is passed to `release`, which must ensure that sooner or later the owner of *that* slot's pool comes here with
   it. Then the result is false: the slot may go on the free list. The `wider` slots after r are of the same root: they
   hold a value no more either. */
BXR_INTERNAL bool bxr_quarantine_put(boxroot r, uint32_t wider, void (*release)(boxroot));

/* The same for slots of one word of a bitmap: bit i is first[i]. The result: those that went into quarantine. */
BXR_INTERNAL uint64_t bxr_quarantine_put_bits(uintptr_t *first, uint64_t bits, uint32_t wider,
                                              void (*release)(boxroot));

/* Passes all slots in quarantine to `release`. True when there was one. */
BXR_INTERNAL bool bxr_quarantine_flush(void (*release)(boxroot));

/* The library is torn down: empties the quarantine. No other thread may use the library. */
BXR_INTERNAL void bxr_quarantine_reset(void);

/* --- reports of live roots ---------------------------------------------------------------------------------------- */

/* Prints how many roots are live and where they were created; `when` ends the heading "N roots are live…". */
BXR_INTERNAL void bxr_leaks_report(char const *when);

/* The library was set up (bxr_leaks_setup), or is being torn down (bxr_leaks_teardown): where BOXROOT_LEAKS asks for
   it, the roots that are left at the end of the program, or now, are reported. */
BXR_INTERNAL void bxr_leaks_setup(void);
BXR_INTERNAL void bxr_leaks_teardown(void);

#else
static inline bool bxr_account_open(void *segment) { (void)segment; return true; }
static inline bool bxr_account_check(boxroot r) { (void)r; return true; }
static inline void bxr_account_create(boxroot r) { (void)r; }
static inline bool bxr_account_delete(boxroot r) { (void)r; return true; }
static inline void bxr_account_move(boxroot from, boxroot to) { (void)from; (void)to; }
static inline bool bxr_account_free_all(uintptr_t const *slots, uint32_t n) { (void)slots; (void)n; return true; }
static inline void bxr_account_reset(void) {}
static inline void bxr_account_release(void) {}
static inline bool bxr_quarantine_put(boxroot r, uint32_t wider, void (*release)(boxroot))
{
  (void)r;
  (void)wider;
  (void)release;
  return false;
}
static inline uint64_t bxr_quarantine_put_bits(uintptr_t *first, uint64_t bits, uint32_t wider,
                                               void (*release)(boxroot))
{
  (void)first;
  (void)bits;
  (void)wider;
  (void)release;
  return 0;
}
static inline bool bxr_quarantine_flush(void (*release)(boxroot)) { (void)release; return false; }
static inline void bxr_quarantine_reset(void) {}
static inline void bxr_leaks_setup(void) {}
static inline void bxr_leaks_teardown(void) {}
#endif

#endif
