/* SPDX-License-Identifier: MIT */
/* Which thread may act upon pools (OCaml 4.14: one domain, and a master lock), and what kind of thread it is.

   The runtime has no call that tells whether this thread holds the lock. The inline paths compare a thread-local word,
   bxr_lock, with the identity of the domain; the word must never say "held" on two threads that run. Threads take and
   release the lock through two hooks of the runtime, and ours are in them (ocaml4.c); but a thread can release the lock
   without passing our hooks in three situations:
   - another library replaces the hooks without calling the earlier ones (systhreads does when it is initialised);
   - Thread.yield, and the tick that calls it: a thread passes the lock on, sleeps, and returns with the lock;
   - the end of a thread that OCaml made: it releases the lock, and destructors of thread-local data run after that.

   So the word is a token. At most one thread has it, `holder` says which, and only a thread that holds the lock takes
   it: in our hook, in a collection, or on a slow path when the lock turns out to be held. If another thread still has
   the token, that one released the lock without passing our hooks. Its token is revoked: its word is overwritten, and
   the taker waits until that thread cannot be in the middle of an inline path any more (bxr_thread_await_progress). The
   wait is not needed after a yield, where the thread sleeps; a thread in Thread.yield is still on systhreads' list of
   threads, one that has ended is not. A thread that lost the token deletes by way of the bitmaps, and gets the token
   back at its next slow path. No thread ever acts upon pools without the token or, for a moment, without having revoked
   that of all others.

   A thread whose end cannot be noticed is not given the token, since its word would have to be overwritten after the
   end.

   Memory orders. `holder` is written under the lock, but for the end of a thread, which removes itself: with a
   compare-and-swap, and while `holder` is BUSY it waits, as another thread is using its record. The words and the
   records' fields are relaxed: each is written by its thread under the lock, or by the revoker, and the hand-over of
   the lock orders the two. What the revoked thread had begun is ordered before what the revoker does by the system call
   or the interruption that proves its progress. */
#ifndef BXR_OCAML4_TOKEN_H
#define BXR_OCAML4_TOKEN_H

#include "../runtime.h"

#if !BXR_OCAML5
/* The runtime's hooks for blocking sections: `enter` releases the lock, `leave` takes it. */
typedef struct { void (*enter)(void), (*leave)(void); } bxr_runtime_token_hooks;
BXR_INTERNAL bxr_runtime_token_hooks bxr_runtime_token_current_hooks(void);
BXR_INTERNAL bool bxr_runtime_token_hooks_are(bxr_runtime_token_hooks h);

/* This thread holds the lock: gives it the token, unless that takes a wait and the thread may not wait. */
BXR_INTERNAL void bxr_runtime_token_take(bool may_wait);

/* This thread is about to release the lock: takes the token from it. */
BXR_INTERNAL void bxr_runtime_token_drop(void);

/* This thread has passed our hooks: `inside` says whether it has the lock now (but not the token). */
BXR_INTERNAL void bxr_runtime_token_passed(bool inside);

/* Whether this thread got the lock when it last passed our hooks, or took the token. */
BXR_INTERNAL bool bxr_runtime_token_inside(void);

/* A thread released or took the lock without passing our hooks, other than by a yield. Needs the lock. */
BXR_INTERNAL void bxr_runtime_token_missed(void);

/* Teardown: no thread has the token. No other thread may use the library. */
BXR_INTERNAL void bxr_runtime_token_reset(void);

/* To be called in a forked process, which has one thread. */
BXR_INTERNAL void bxr_runtime_token_after_fork(void);

/* --- whether the lock is held ------------------------------------------------------------------------------------- */

/* Whether this thread, which claims to hold the master lock, holds it, as far as that can be found out: where it
   cannot, the thread is believed. Needs nothing. */
BXR_INTERNAL bool bxr_runtime_lock_is_held(void);

/* To be called at the first attachment, before bxr_runtime_lock_is_held. Needs the lock. */
BXR_INTERNAL void bxr_runtime_lock_prepare(void);

/* --- threads that OCaml made -------------------------------------------------------------------------------------- */

/* Threads that OCaml made release the master lock at their end without passing the hooks, and destructors of
   thread-local data run after that, with the token. Deletions by inline paths are harmless then, as nobody touches
   pools meanwhile; but no root must be made. So these threads make roots on slow paths only, which look at what the
   runtime did at the thread's end: it left no frames of OCaml code, unless it was Thread.exit, and it took away the
   alternate stack for signals that it had set up (native code).

   What is not found out: where bytecode threads called Thread.exit, until another thread takes the lock; likewise on a
   thread that began before the library's first use, and neither used it nor passed a blocking section since.

   bxr_runtime_origin_find: this thread has just got the lock, by way of the hooks; finds out whose thread it is. */
BXR_INTERNAL void bxr_runtime_origin_find(void);

/* Whether OCaml made this thread, as far as is known. Cost: a load, and more at first. */
BXR_INTERNAL bool bxr_runtime_origin_is_ocaml(void);

/* Whether it did, and the thread has ended since, as far as OCaml is concerned. For a thread that seems to have the
   lock. Cost: some loads; a system call when it is called from other OCaml code than before. */
BXR_INTERNAL bool bxr_runtime_origin_has_ended(void);
#endif

#endif
