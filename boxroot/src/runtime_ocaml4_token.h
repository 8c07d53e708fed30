/* SPDX-License-Identifier: MIT */
/* Which thread may act upon pools (OCaml 4.14: one domain, and a master lock).

   The runtime has no call that tells whether this thread holds the lock. The inline paths compare a thread-local
   word, bxr_lock, with the identity of the domain; the word must never say "held" on two threads that run. Threads
   take and release the lock through two hooks of the runtime, and ours are in them (runtime_ocaml4_hooks.h); but a
   thread can release the lock without passing our hooks in three situations:
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
#ifndef BXR_RUNTIME_OCAML4_TOKEN_H
#define BXR_RUNTIME_OCAML4_TOKEN_H

#include "runtime.h"

#if !BXR_OCAML5
/* The runtime's hooks for blocking sections: they release and take the lock. */
typedef struct { void (*enter)(void), (*leave)(void); } bxr_runtime_token_hooks;
BXR_INTERNAL bxr_runtime_token_hooks bxr_runtime_token_current_hooks(void);
BXR_INTERNAL bool bxr_runtime_token_hooks_are(bxr_runtime_token_hooks h);

/* This thread holds the lock: it gets the token, unless that takes a wait and it may not wait. */
BXR_INTERNAL void bxr_runtime_token_take(bool may_wait);

/* It is about to release the lock. */
BXR_INTERNAL void bxr_runtime_token_drop(void);

/* It has passed our hooks: it has the lock now (but not the token), or it has not. */
BXR_INTERNAL void bxr_runtime_token_passed(bool inside);

/* Whether it got the lock when it last passed our hooks, or took the token. */
BXR_INTERNAL bool bxr_runtime_token_inside(void);

/* Whether it is certain that it does not hold the lock: it cannot have got the lock without passing our hooks since it
   released it. */
BXR_INTERNAL bool bxr_runtime_token_released(void);

/* A thread released or took the lock without passing our hooks, other than by a yield. Needs the lock. */
BXR_INTERNAL void bxr_runtime_token_missed(void);

/* Teardown: no thread has the token. No other thread may use the library. */
BXR_INTERNAL void bxr_runtime_token_reset(void);

/* In a forked process, which has one thread. */
BXR_INTERNAL void bxr_runtime_token_after_fork(void);
#endif

#endif
