/* SPDX-License-Identifier: MIT */
/* The account of the checked build: a record for each slot, which says what the slot is at the moment, and where its
   last root was created and deleted. Knows regions, pools and slots by their addresses, and nothing of domains and
   locks: every function may be called by any thread, with or without a lock, at any time; none waits for another.

   A slot's life:

     free ─create─► live ─delete─► deleted ─fold─► quarantined ─N others later─► released ─► free
                     │
                     └─teardown─► torn down ─create─► live

   deleted      the program has given the root up; the deletion is still to be carried out, and the slot keeps its value
                until then
   quarantined  carried out: no marker needs the value, and the slot holds BXR_DELETED_WORD (quarantine.h); N =
                BOXROOT_QUARANTINE
   released     out of the quarantine, on the way to the free list; a deletion that may be deferred once more, but is
                never quarantined again
   torn down    live when the library was torn down

   Invariants: a slot on a free list, or never used, is free or torn down; any other is live, deleted, quarantined or
   released (validated, with the next); a quarantined or released slot holds BXR_DELETED_WORD; the quarantine has at
   most N slots, all of them quarantined. */
#ifndef BXR_ACCOUNT_H
#define BXR_ACCOUNT_H

#include "region.h"
#include "site.h"

#if BOXROOT_DEBUG
/* What a deleted slot reads as: odd, so that neither collector nor program takes it for a pointer, and easily
   recognised. */
#define BXR_DELETED_WORD ((uintptr_t)0xdeadb0c5deadb0c5)

typedef enum {
  BXR_SLOT_FREE, BXR_SLOT_LIVE, BXR_SLOT_DELETED, BXR_SLOT_QUARANTINED, BXR_SLOT_RELEASED, BXR_SLOT_TORN_DOWN
} bxr_slot_state;

/* Opens an account for the slots of a region, if there is none yet; they are free. False when there is no memory.
   With BOXROOT_STACKS=1 in the environment it also keeps, for each root, the calls that led to its creation and
   deletion. */
BXR_INTERNAL bool bxr_account_open(void *region);

/* The state of a slot, whose region must have an account; and a new one, after what it stands for. */
BXR_INTERNAL bxr_slot_state bxr_account_state(uintptr_t const *slot);
BXR_INTERNAL void bxr_account_set_state(uintptr_t const *slot, bxr_slot_state state);

/* The public call that this thread is in was made at `here`. The result is the place of the call around it, if any (a
   signal handler or a finaliser may make a call within another), which is to be put back by bxr_account_leave. */
BXR_INTERNAL bxr_site bxr_account_enter(bxr_site here);
BXR_INTERNAL void bxr_account_leave(bxr_site outer);

/* Faults unless r is live. `what` is the function that was given it, at `here`. */
BXR_INTERNAL void bxr_account_check(boxroot r, char const *what, bxr_site here);

/* r, a slot that is free or torn down, becomes live, in the public call that this thread is in. */
BXR_INTERNAL void bxr_account_create(boxroot r);

/* r becomes deleted, at `here`. Faults as bxr_account_check does, but with the name double delete. */
BXR_INTERNAL void bxr_account_delete(boxroot r, bxr_site here);

/* A modification has moved the root from `from` to `to`, which is live: `from` becomes deleted in the public call that
   this thread is in, and `to` counts as created where `from` was. */
BXR_INTERNAL void bxr_account_move(boxroot from, boxroot to);

/* Ends the program: `what` was called at `here` by a thread without the lock that it needs. */
BXR_INTERNAL __attribute__((noreturn)) void bxr_account_fault_no_lock(boxroot r, char const *what, bxr_site here);

/* Ends the program: the memory of the deleted root r was written to. */
BXR_INTERNAL __attribute__((noreturn)) void bxr_account_fault_written(boxroot r);

/* The library is torn down: live slots are torn down, all others free. No other thread may use the library. */
BXR_INTERNAL void bxr_account_reset(void);

/* The library is being unloaded: frees all memory of the account. */
BXR_INTERNAL void bxr_account_release(void);

/* Whether r was live when the library was torn down, and its slot has not been used since. */
BXR_INTERNAL bool bxr_account_is_torn_down(boxroot r);

/* The number of live slots; and the places where at most `most` of them were created: how many. */
BXR_INTERNAL uint64_t bxr_account_live(void);
BXR_INTERNAL size_t bxr_account_live_sites(bxr_site_count *places, size_t most);

/* Whether a variable of the environment is set to something: not empty, and not beginning with 0. */
BXR_INTERNAL bool bxr_account_wanted(char const *variable);
#else
static inline bool bxr_account_open(void *region) { (void)region; return true; }
static inline void bxr_account_create(boxroot r) { (void)r; }
static inline void bxr_account_move(boxroot from, boxroot to) { (void)from; (void)to; }
static inline void bxr_account_reset(void) {}
static inline void bxr_account_release(void) {}
#endif

#endif
