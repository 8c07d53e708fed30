/* SPDX-License-Identifier: MIT */
/* Weak roots: cells that foreign code owns and that hold an OCaml value without keeping it alive. Once nothing else
   does, the value is collected, and the weak root is *dead*. They break cycles between OCaml and the rest (a closure
   holds a C++ object which holds the closure), and serve as caches and as observers.

     boxroot_weak w = boxroot_weak_create(closure);
     ...
     value f;
     if (boxroot_weak_get(w, &f)) caml_callback(f, Val_unit);
     boxroot_weak_delete(w);                                       // any thread, at any time

   They mean what OCaml's module Weak means, whose arrays hold them. So
   - a value is alive in its own finaliser (Gc.finalise), though not afterwards, unless that stored it; in that of
     Gc.finalise_last it is dead;
   - immediate values, and what is outside the heap, never die; with Outheap's runtime a value in a region lives as long
     as that;
   - a lazy value is refused, since the collector may put the result in its place once it was forced: hold a record that
     has it as a field;
   - OCaml 5.0 to 5.4 make them on the first domain only, for the runtime loses the weak arrays of domains that end
     (docs/internals/upstream.md). They are used and deleted on all;
   - OCaml 5.0, and 5.6 and later: not tested, so none is made.
   Ownership, locks, copies of the library and unloading: as for roots (boxroot.h), where nothing else is said. */
#ifndef BOXROOT_WEAK_H
#define BOXROOT_WEAK_H

#include "../boxroot.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct boxroot_weak_private *boxroot_weak;

/* boxroot_weak_create(v): a new weak root that holds v; the caller owns it.
   Needs the domain lock. Never runs the GC, so v stays valid. Sets the library up at its first use.
   Failure: NULL, with the reasons of boxroot_create; with EPERM also in a finaliser of what OCaml's shutdown finds in
   the heap at its end (since OCaml 5.4); or errno == EINVAL: v is a lazy value; or errno == ENOTSUP: on a domain but
   the first, before OCaml 5.5; with a version of OCaml that was not tested.
   Cost: constant; a call, 15 to 35 nanoseconds. One in 254 makes an array of as many in the major heap. If v is young,
   the next minor collection looks at the weak root, and very many (some 30,000 with the usual minor heap) bring it
   about. Otherwise minor collections do not know of weak roots; the collector looks at each once in a major cycle, in
   steps of at most 254. */
boxroot_weak boxroot_weak_create(value v) BXR_LINK_NAME(weak_create);

/* boxroot_weak_get(w, &v): true, and v is the value that w holds; or false, and v is left alone, if w is dead; then it
   is for ever. The value is subject to the usual rules for values that are not rooted. Never runs the GC.
   Needs w non-NULL and owned or borrowed, and the domain lock: of any domain. No failure. After boxroot_teardown all
   are dead. Cost: constant, 6 to 15 nanoseconds. */
bool boxroot_weak_get(boxroot_weak w, value *v) BXR_LINK_NAME(weak_get);

/* boxroot_weak_upgrade(w): a new root that holds the value of w, which is owned by the caller; or NULL.
   Needs what boxroot_weak_get needs. NULL with errno == 0: w is dead. NULL otherwise: failure, as boxroot_create.
   Cost: that of boxroot_weak_get and boxroot_create. */
boxroot boxroot_weak_upgrade(boxroot_weak w) BXR_LINK_NAME(weak_upgrade);

/* boxroot_weak_delete(w): ends the weak root w; the caller gives it up.
   Needs w non-NULL and owned. Needs no lock, and may be called wherever boxroot_delete may. After boxroot_teardown the
   call does nothing, until the library is set up again; then it is an error. No failure.
   Cost: constant; on the domain that created w a call and a few stores, otherwise one atomic operation, and two more
   for the first in 64. A place deleted elsewhere, or made by a domain that has ended, is used again, and its memory
   (8 bytes a weak root in the heap, 1 outside) given back, when the domain, or the next one with its identity, creates
   a weak root and finds no room; or at boxroot_teardown. */
void boxroot_weak_delete(boxroot_weak w) BXR_LINK_NAME(weak_delete);

/* The checked build (BOXROOT_DEBUG) ends the program, with the places, at "use after delete" and "double delete" of a
   weak root, until its place is used again, and at a use without the domain lock. */

#if BOXROOT_DEBUG && !defined(BXR_LIBRARY) /* private: boxroot/checked.h */
BXR_AT(boxroot_weak, weak_create, (value v, BXR_PLACE), (v))
BXR_AT(bool, weak_get, (boxroot_weak w, value *v, BXR_PLACE), (w, v))
BXR_AT(boxroot, weak_upgrade, (boxroot_weak w, BXR_PLACE), (w))
BXR_VOID_AT(weak_delete, (boxroot_weak w, BXR_PLACE), (w))
#define boxroot_weak_create(v) bxr_weak_create_at((v), BXR_HERE)
#define boxroot_weak_get(w, v) bxr_weak_get_at((w), (v), BXR_HERE)
#define boxroot_weak_upgrade(w) bxr_weak_upgrade_at((w), BXR_HERE)
#define boxroot_weak_delete(w) bxr_weak_delete_at((w), BXR_HERE)
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
