/* SPDX-License-Identifier: MIT */
/* Boxroot: movable GC roots for OCaml. A root is a cell that foreign code owns and that keeps one OCaml value alive;
   the garbage collector updates it when the value moves. Roots are created, read, modified and deleted in constant
   time.

   Link with the object of boxroot/src/all.c (or the dune library `boxroot`). OCaml 4.14 and 5; 64-bit; GCC or Clang;
   C11 or C++11.

   Ownership. A root has one owner at a time, who alone may modify or delete it. Ownership moves freely between
   functions, data structures, threads and domains; moving a root is copying a pointer.

   Locks. "The domain lock" is the lock a thread holds while it runs OCaml code or C code called from it, outside
   caml_enter_blocking_section .. caml_leave_blocking_section ("runtime lock" in OCaml 4.14). A function that "needs the
   domain lock" accepts the lock of any domain. Which calls may run at the same time: docs/reference/threads.md in the
   source repository.

   Copies. A process can contain several copies of the library (in the program, in plug-ins), of any versions and
   switches, in any order of loading, set-up and teardown: each keeps its own roots, status and counters. Copies of
   one version and the same switches share their names, so that normally the first one loaded serves all; then
   teardown ends the roots of all. Where they are separate (hidden names, -Bsymbolic), a root may be read, modified and
   deleted through another of them, set up or not, until one of the two is torn down; but not through a copy of
   another version or with other switches. The checked build ends the program ("foreign pointer") at a root of another
   copy. Version 0.4.0 can be one of them; but on OCaml 4.14 it refuses to create roots once another library has put
   hooks on the lock ("Ensure boxroot_setup() is called as documented"), as this one does. Its existing roots stay
   valid.

   Unloading. A shared object with the library may be unloaded (dlclose) while OCaml goes on: unused, or after
   boxroot_teardown; not while the library is set up. Its address space is then given back to the system (up to OCaml
   5.3 only when a major cycle has ended since the teardown; with Outheap's runtime not). Where another library has
   wrapped its hooks, the teardown makes the object stay in the process until that ends. An object that stayed, for this
   or another reason (a second handle; thread-local data of a thread that still runs), is the one that is found when it
   is loaded again: its status is BOXROOT_TORE_DOWN, and boxroot_setup starts it. One that was unloaded is
   BOXROOT_NOT_SETUP when it is loaded again. */
#ifndef BOXROOT_H
#define BOXROOT_H

#include "boxroot/config.h"
#include "boxroot/statistics.h"
#include <caml/mlvalues.h>
#include <stddef.h>
#include <stdint.h>
#ifndef __cplusplus
#include <stdbool.h>
#endif

#define BOXROOT_VERSION "0.5.0"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bxr_private *boxroot;

/* boxroot_create(v): a new root that holds v; the caller owns it.
   Needs the domain lock. Never runs the GC, so v stays valid. Sets the library up at its first use.
   Failure: NULL, with errno == EPERM (the domain lock is not held, as in destructors of thread-local data once the
   thread's domain has ended; or, with OCaml 4.14, a thread that OCaml made, though two rare cases are missed there:
   docs/reference/threads.md) or ENOMEM (no memory for more roots; v is untouched and every existing root is intact; a
   deletion on this domain makes room for a creation at once), or boxroot_status() == BOXROOT_TORE_DOWN.
   boxroot_error_string() says which. When OCaml has shut down nobody holds the lock: EPERM (up to OCaml 5.3, whose
   runtime does not say that it shuts down, after as many creations as there are free slots in a pool: 2,048 at most).
   Cost: constant; about a dozen instructions inline, and one call in every 128 at most that takes up to a few
   microseconds (more when it finds many remote deletions to carry out). With OCaml 4.14, on threads that OCaml made, a
   call. */
BXR_INLINE boxroot boxroot_create(value v) BXR_LINK_NAME(create);

/* boxroot_get(r): the value that r holds. boxroot_get_ref(r): the address of the cell, which the GC keeps up to date;
   it is valid until r is deleted or modified.
   Both need r non-NULL and owned or borrowed. boxroot_get, and reading through the reference, need the domain lock, and
   the value read is subject to the usual rules for values that are not rooted. No failure; the checked build ends the
   program at a boxroot_get without the domain lock ("use without the domain lock"; with OCaml 4.14 where it can tell).
   Cost: one load; none. */
BXR_INLINE value boxroot_get(boxroot r) BXR_LINK_NAME(get);
BXR_INLINE value const *boxroot_get_ref(boxroot r) BXR_LINK_NAME(get_ref);

/* boxroot_delete(r): ends the root r; the caller gives it up.
   Needs r non-NULL and owned. Needs no lock: any thread may call it at any time, registered with OCaml or not, also
   inside a finaliser of a custom block. It does not block, takes no lock, and does not fail.
   Not in an asynchronous signal handler that may interrupt a thread which holds the domain lock: the inline path is not
   reentrant, so the handler and the interrupted call could lose each other's slots. Where the interrupted thread does
   not hold the lock (a thread that OCaml does not know; a blocking section, with the signal blocked outside), the call
   is async-signal-safe: it consists of lock-free atomic operations. That does not hold for the checked build, nor for a
   thread's first call into a library that was loaded by dlopen, where the system allocates the thread's variables.
   OCaml's own signal handlers (Sys.signal) are not asynchronous: everything is allowed there.
   Cost: constant; about a dozen instructions inline on the domain that created r, about two dozen while the collector
   is still to mark the value, one or two atomic operations otherwise (a remote deletion). A root that is deleted
   remotely, or while the collector marks, keeps its value alive until its domain has carried the deletion out: at a
   minor collection after the end of marking, or when it needs free slots; after very many deletions it takes several
   collections, which do a bounded part each. A compaction carries out all.
   During and after OCaml's shutdown it is allowed, also where that has freed all memory of OCaml (caml_startup_pooled,
   or "c" in OCAMLRUNPARAM), as in destructors of C++ objects with static storage duration. After boxroot_teardown the
   call does nothing. */
BXR_INLINE void boxroot_delete(boxroot r) BXR_LINK_NAME(delete);

/* boxroot_modify(&r, v): makes r hold v. *r may change (the cell moves when it must: at most once between two minor
   collections while one domain modifies it), which invalidates references obtained earlier by boxroot_get_ref.
   Needs r owned and the domain lock. Failure: false, with the reasons of boxroot_create; then r still holds its old
   value.
   Cost: constant; a few instructions for a root created or modified since the last minor collection. */
BXR_INLINE bool boxroot_modify(boxroot *r, value v) BXR_LINK_NAME(modify);

/* boxroot_domain_here(): a handle on the domain whose lock the caller holds, for callers that create or delete many
   roots: boxroot_create_in(d, v) and boxroot_delete_in(d, r) do what boxroot_create and boxroot_delete do, without
   finding out which domain calls. The handle is valid for any thread, as long as it holds the lock of that domain:
   after a blocking section of the same thread too, but not in it, and not after the domain's end or boxroot_teardown.
   All three need the domain lock; the latter two that of d's domain, which only the checked build tests: a caller
   without it corrupts memory.
   Failure: NULL, as boxroot_create. Cost: a call; for the two others, less than boxroot_create and boxroot_delete (no
   thread-local word is read). With OCaml 4.14 they are the same. */
typedef struct boxroot_domain_private *boxroot_domain;
boxroot_domain boxroot_domain_here(void) BXR_LINK_NAME(domain_here);
BXR_INLINE boxroot boxroot_create_in(boxroot_domain d, value v) BXR_LINK_NAME(create_in);
BXR_INLINE void boxroot_delete_in(boxroot_domain d, boxroot r) BXR_LINK_NAME(delete_in);

/* boxroot_setup(): prepares the library. Calling it is optional; boxroot_create does it. With OCaml 4.14, a program
   whose first call to boxroot_create might come without the lock should call it once after OCaml's start-up: the
   library assumes that the first call has the lock where it cannot find out.
   Needs the domain lock. True also when the library is running already. After boxroot_teardown it starts the library
   again.
   Failure: false with errno == EPERM; or with errno == ENOTSUP, as then for every function that sets the library up:
   the library was compiled for another minor version of OCaml 5 than the runtime that it is linked with. */
bool boxroot_setup(void) BXR_LINK_NAME(setup);

/* boxroot_teardown(): returns the memory of roots to the system (all but a page for each pool) and removes the
   library's hooks from the runtime (hooks that another library has since wrapped stay, and do nothing; with OCaml 5 one
   that was there before OCaml started stays, too: it tells the thread of a domain that ends that it has no lock). It
   invalidates all roots: deleting one has no effect afterwards (until the library is set up again; then it is an
   error), reading one gives an unspecified value but does not crash. boxroot_create and boxroot_modify fail until
   boxroot_setup is called.
   To be called when no other thread uses the library: after OCaml has shut down, or with the lock of the only domain;
   in the latter case it may run the GC (OCaml 5: the marker finishes first. The memory of a domain whose marker cannot
   be waited for is not returned). No failure.
   Cost: with OCaml 5 the rest of the marking that is under way; then about 10 milliseconds for a million roots, most of
   it in the system, which takes their memory back. */
void boxroot_teardown(void) BXR_LINK_NAME(teardown);

/* boxroot_status(): the state of the library. For the cause of a failure see also errno: with BOXROOT_NOT_SETUP and
   BOXROOT_RUNNING a failure is transient (EPERM: take the domain lock; ENOMEM: free memory) and with BOXROOT_TORE_DOWN
   it lasts until boxroot_setup. BOXROOT_INVALID is kept for programs written for earlier versions; this library never
   reports it.
   No requirements. */
enum { BOXROOT_NOT_SETUP, BOXROOT_RUNNING, BOXROOT_TORE_DOWN, BOXROOT_INVALID };
int boxroot_status(void) BXR_LINK_NAME(status);

/* boxroot_error_string(): why the last failing call of this thread failed, as a constant string. No requirements. */
char const *boxroot_error_string(void) BXR_LINK_NAME(error_string);

/* Counters since the start of the program, summed over all domains: boxroot/statistics.h has their list, with the
   meaning of each. They are always on: every counter is updated on slow paths only. */
typedef struct boxroot_statistics {
#define BXR_FIELD(name, meaning) uint64_t name;
  BOXROOT_FIGURES(BXR_FIELD)
  BOXROOT_COUNTERS(BXR_FIELD)
#undef BXR_FIELD
} boxroot_statistics;

/* boxroot_get_stats(&s): a snapshot of the counters. No requirements; counters of running domains may lag. Cost: one
   pass over the records of all possible domains, a few microseconds. */
void boxroot_get_stats(boxroot_statistics *out) BXR_LINK_NAME(get_stats);

/* boxroot_print_stats(): the same, in words, on the standard output. */
void boxroot_print_stats(void) BXR_LINK_NAME(print_stats);

/* boxroot_report_roots(): the number of live roots, with weak ones. In the checked build (BOXROOT_DEBUG) it also prints
   on the standard error output where they were created, the most frequent place first. A release build does not record
   this, since that would slow down creation and deletion: it prints nothing, and the result is UINT64_MAX; it has the
   reports of boxroot/report.h. With BOXROOT_LEAKS=1 in the environment, a checked build makes this report when the
   program exits (after C++ objects with static storage duration have ended their roots, in the program and, with glibc,
   in all shared objects; an object with the library stays in the process until then) and at boxroot_teardown, if there
   are roots left. No requirements; roots that are created or deleted meanwhile may or may not be counted. Cost: a look
   at every slot, and memory for a list of the places, if it is available. */
uint64_t boxroot_report_roots(void) BXR_LINK_NAME(report_roots);

/* Kept for programs written for earlier versions; the same as boxroot_setup. */
static inline void boxroot_setup_systhreads(void) { (void)boxroot_setup(); }

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "boxroot/inline.h"

#endif /* BOXROOT_H */
